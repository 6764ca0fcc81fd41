// One rule per operator whose old form the converter refuses or gets wrong.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/normalize.h"
#include "graph/onnx/proto_attributes.h"

namespace zeroplan {
namespace {

void drop(onnx::NodeProto& node, std::string_view name) {
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == name) node.mutable_attribute()->DeleteSubrange(i, 1);
}

onnx::AttributeProto& add(onnx::NodeProto& node, const char* name, onnx::AttributeProto::AttributeType type) {
  drop(node, name);
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void set(onnx::NodeProto& node, const char* name, int64_t value) { add(node, name, onnx::AttributeProto::INT).set_i(value); }
void set(onnx::NodeProto& node, const char* name, const char* value) { add(node, name, onnx::AttributeProto::STRING).set_s(value); }

void modern(OldNode& old) {
  drop(old.node, "consumed_inputs");
  old.node.set_domain(kModernDomain);
}

void legacy(OldNode& old) {
  drop(old.node, "consumed_inputs");
  old.node.set_domain(kLegacyDomain);
}

std::string fresh_name(OldNode& old) { return fmt::format("{}/{}", kModernDomain, old.fresh++); }

// The output of a new node of the default domain in front of the old one.
std::string put_before(OldNode& old, onnx::NodeProto node) {
  node.set_name(old.node.name());
  node.set_domain(kModernDomain);
  node.add_output(fresh_name(old));
  old.before.push_back(std::move(node));
  return old.before.back().output(0);
}

std::string constant(OldNode& old, onnx::TensorProto tensor) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  *add(node, "value", onnx::AttributeProto::TENSOR).mutable_t() = std::move(tensor);
  return put_before(old, std::move(node));
}

std::string floats(OldNode& old, const std::vector<float>& values, bool scalar = false) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.mutable_float_data()->Assign(values.begin(), values.end());
  return constant(old, std::move(tensor));
}

// Scales were attributes below opset 9; coordinates are x_original = x / scale, and nearest rounds down.
void upsample(OldNode& old) {
  onnx::NodeProto& node = old.node;
  std::string scales = node.input_size() > 1 ? node.input(1) : "";
  if (const auto* list = find_attribute(node, "scales")) scales = floats(old, {list->floats().begin(), list->floats().end()});
  const auto *height = find_attribute(node, "height_scale"), *width = find_attribute(node, "width_scale");
  if (height && width) scales = floats(old, {1, 1, height->f(), width->f()});
  for (const char* name : {"scales", "height_scale", "width_scale"}) drop(node, name);
  const std::string x = node.input_size() > 0 ? node.input(0) : "";
  node.clear_input();
  for (const std::string& input : {x, std::string(), scales}) node.add_input(input);
  if (const auto* mode = find_attribute(node, "mode"); mode && mode->s() == "bilinear") set(node, "mode", "linear");
  set(node, "coordinate_transformation_mode", "asymmetric");
  set(node, "nearest_mode", "floor");
  node.set_op_type("Resize");
  modern(old);
}

// At opsets below 7 `broadcast` aligned the second operand with `axis` of the first, or with its last axes as NumPy does.
void old_broadcast(OldNode& old) {
  const bool aligned = int_attribute(old.node, "broadcast", 0) != 0 && find_attribute(old.node, "axis");
  drop(old.node, "broadcast");
  if (aligned) return legacy(old);
  drop(old.node, "axis");
  modern(old);
}

// Operands are broadcast as before, whether the attribute says so or not. The converter would look at shapes that need not be known.
void gemm(OldNode& old) {
  drop(old.node, "broadcast");
  modern(old);
}

struct TypeName {
  std::string_view name;
  onnx::TensorProto::DataType type;
};

constexpr std::array<TypeName, 13> kTypes = {{{"FLOAT", onnx::TensorProto::FLOAT},
                                              {"UINT8", onnx::TensorProto::UINT8},
                                              {"INT8", onnx::TensorProto::INT8},
                                              {"UINT16", onnx::TensorProto::UINT16},
                                              {"INT16", onnx::TensorProto::INT16},
                                              {"INT32", onnx::TensorProto::INT32},
                                              {"INT64", onnx::TensorProto::INT64},
                                              {"STRING", onnx::TensorProto::STRING},
                                              {"BOOL", onnx::TensorProto::BOOL},
                                              {"FLOAT16", onnx::TensorProto::FLOAT16},
                                              {"DOUBLE", onnx::TensorProto::DOUBLE},
                                              {"UINT32", onnx::TensorProto::UINT32},
                                              {"UINT64", onnx::TensorProto::UINT64}}};

void cast(OldNode& old) {
  const auto* to = find_attribute(old.node, "to");
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& t) { return to && t.name == to->s(); });
  if (known == kTypes.end())
    throw Error(fmt::format("node '{}' (Cast, opset {}) casts to the unknown type '{}'", old.node.name(), old.opset, to ? to->s() : ""));
  set(old.node, "to", int64_t{known->type});
  modern(old);
}

// Training showed by is_test below opset 7, by more than one output from there on.
void batch_normalization(OldNode& old) {
  onnx::NodeProto& node = old.node;
  const bool training = old.opset < 7 ? int_attribute(node, "is_test", 0) == 0 : node.output_size() > 1;
  const bool per_element = old.opset < 9 && int_attribute(node, "spatial", 1) == 0;
  if (per_element && training)
    throw Error(
        fmt::format("node '{}' (BatchNormalization, opset {}) trains with statistics for each element (spatial = 0), which is not "
                    "supported; export it in evaluation mode",
                    node.name(), old.opset));
  for (const char* name : {"is_test", "spatial"}) drop(node, name);
  const int outputs = training ? 3 : 1;  // saved statistics were for a backward pass of their own
  while (node.output_size() > outputs) node.mutable_output()->RemoveLast();
  if (training) set(node, "training_mode", int64_t{1});
  per_element ? legacy(old) : modern(old);
}

// The mask was of the operand's type below opset 10; without training nothing is masked.
void dropout(OldNode& old) {
  onnx::NodeProto& node = old.node;
  const bool training = old.opset < 7 && int_attribute(node, "is_test", 0) == 0;
  const auto* ratio = find_attribute(node, "ratio");
  node.add_input(floats(old, {ratio ? ratio->f() : 0.5f}, true));
  onnx::TensorProto mode;
  mode.set_data_type(onnx::TensorProto::BOOL);
  mode.add_int32_data(training);
  node.add_input(constant(old, std::move(mode)));
  for (const char* name : {"ratio", "is_test"}) drop(node, name);
  if (old.opset < 10 && node.output_size() > 1 && !node.output(1).empty()) {
    onnx::NodeProto plain = node;  // the node itself gives the mask; one like it, in front, the output
    const std::string name = node.name(), mask = fresh_name(old);
    plain.set_output(1, mask);
    plain.set_domain(kModernDomain);
    old.before.push_back(std::move(plain));
    const std::string x = node.input(0), result = node.output(1);
    node.Clear();
    node.set_name(name);
    node.set_op_type("CastLike");
    node.add_input(mask);
    node.add_input(x);
    node.add_output(result);
  }
  modern(old);
}

void recurrent(OldNode& old) {
  if (int_attribute(old.node, "output_sequence", 1) == 0 && old.opset < 7 && find_attribute(old.node, "output_sequence") &&
      old.node.output_size() > 0)
    old.node.set_output(0, "");
  drop(old.node, "output_sequence");
  modern(old);
}

void scatter(OldNode& old) {
  old.node.set_op_type("ScatterElements");
  modern(old);
}

void selu(OldNode& old) {
  if (!find_attribute(old.node, "alpha")) add(old.node, "alpha", onnx::AttributeProto::FLOAT).set_f(1.6732f);
  if (!find_attribute(old.node, "gamma")) add(old.node, "gamma", onnx::AttributeProto::FLOAT).set_f(1.0507f);
  modern(old);
}

// The order of the norm was a floating-point number.
void lp_pool(OldNode& old) {
  const auto* p = find_attribute(old.node, "p");
  if (p && p->type() == onnx::AttributeProto::FLOAT) {
    const float order = p->f();
    constexpr float kLargest = 1e6f;
    if (!(order >= 0 && order <= kLargest))
      throw Error(fmt::format("node '{}' ({}): a norm of order {} is not supported", old.node.name(), old.node.op_type(), order));
    set(old.node, "p", static_cast<int64_t>(order));
    if (static_cast<float>(old.node.attribute(old.node.attribute_size() - 1).i()) != order)
      throw Error(fmt::format("node '{}' ({}): a norm of order {} is not supported", old.node.name(), old.node.op_type(), order));
  }
  modern(old);
}

void concat(OldNode& old) {
  if (!find_attribute(old.node, "axis")) set(old.node, "axis", int64_t{1});
  modern(old);
}

struct Rule {
  std::string_view op;
  int first, last;  // opsets
  RewriteNode rewrite;
};

constexpr Rule kRules[] = {
    {"Upsample", 1, kMaxOpset, upsample},
    {"Resize", 10, 10, upsample},
    {"Hardmax", 1, 12, legacy},
    {"PRelu", 1, 6, legacy},
    {"Tile", 1, 5, legacy},
    {"GroupNormalization", 18, 20, legacy},
    {"Dropout", 1, 11, dropout},
    {"BatchNormalization", 1, 13, batch_normalization},
    {"Cast", 1, 5, cast},
    {"GRU", 1, 6, recurrent},
    {"LSTM", 1, 6, recurrent},
    {"RNN", 1, 6, recurrent},
    {"Scatter", 1, kMaxOpset, scatter},
    {"Selu", 1, 5, selu},
    {"LpPool", 1, 1, lp_pool},
    {"GlobalLpPool", 1, 1, lp_pool},
    {"Concat", 1, 3, concat},
    {"Gemm", 1, 6, gemm},
    {"Add", 1, 6, old_broadcast},
    {"Sub", 1, 6, old_broadcast},
    {"Mul", 1, 6, old_broadcast},
    {"Div", 1, 6, old_broadcast},
    {"Pow", 1, 6, old_broadcast},
    {"And", 1, 6, old_broadcast},
    {"Or", 1, 6, old_broadcast},
    {"Xor", 1, 6, old_broadcast},
    {"Equal", 1, 6, old_broadcast},
    {"Less", 1, 6, old_broadcast},
    {"Greater", 1, 6, old_broadcast},
};

}  // namespace

RewriteNode find_rewrite(const onnx::NodeProto& node, int opset) {
  if (!node.domain().empty() && node.domain() != kModernDomain) return nullptr;
  for (const Rule& rule : kRules)
    if (node.op_type() == rule.op && opset >= rule.first && opset <= rule.last) return rule.rewrite;
  return nullptr;
}

}  // namespace zeroplan
