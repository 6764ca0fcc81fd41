// What a stored tensor is by the place where it is read: a weight, a number of the model, or nothing that a gradient reaches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <set>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/limits.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

RoleRow role_of(const ModelBuilder& m, const std::string& name, ImportOptions options = {}) {
  const TemporaryFolder folder;
  options.samples = 2;
  std::vector<std::string> problems;
  const ImportedModel model = ModelFile(m.save(folder.file("m.onnx"))).inspect(options, problems);
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
  for (const RoleRow& row : model.roles)
    if (row.initializer == name) return row;
  throw Error("no row " + name);
}

ModelBuilder& mean_of(ModelBuilder& m, const std::string& y) { return m.add("ReduceMean", {y}, "loss", {{"keepdims", 0}}); }

ModelBuilder model_of(std::vector<std::string> dims, int opset = 24) {
  ModelBuilder m(opset);
  m.input("x", std::move(dims)).output("loss", {});
  return m;
}

// Scores of 3 classes, labels, and the classes' weights.
TEST(Roles, WeightsOfClassesAreNoParameters) {
  for (const bool microsoft : {false, true}) {
    ModelBuilder m = model_of({"N", "2"}, 17);
    m.input("labels", {"N"}, onnx::TensorProto::INT64);
    m.weight("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    m.weight("class_weights", {3}, {1, 2, 0.5F});
    m.node("MatMul", {"x", "w"}, {"scores"});
    if (microsoft) {
      m.proto.add_opset_import()->set_domain("com.microsoft");
      m.proto.mutable_opset_import(1)->set_version(1);
      m.node("SoftmaxCrossEntropyLossInternal", {"scores", "labels", "class_weights"}, {"loss", "log_prob"}).set_domain("com.microsoft");
    } else {
      m.node("SoftmaxCrossEntropyLoss", {"scores", "labels", "class_weights"}, {"loss"});
    }
    EXPECT_EQ(role_of(m, "w").role, Role::parameter);
    EXPECT_EQ(role_of(m, "class_weights").role, Role::constant) << microsoft;
    EXPECT_EQ(role_of(m, "class_weights").reason, "no gradient path to the loss");
  }
}

// x [N,2,3,4] attends to itself under a mask that `add` makes.
template <typename Fn>
ModelBuilder masked(Fn&& add) {
  ModelBuilder m = model_of({"N", "2", "3", "4"});
  m.weight("w", {4}, {1, 2, 3, 4});
  m.node("Mul", {"x", "w"}, {"q"});
  add(m);
  m.node("Attention", {"q", "x", "x", "mask"}, {"y"});
  mean_of(m, "y");
  return m;
}

const std::vector<float> kCausal = {0, -1e4F, -1e4F, 0, 0, -1e4F, 0, 0, 0};

TEST(Roles, AStoredMaskOfAttentionIsNoWeight) {
  const ModelBuilder direct = masked([](ModelBuilder& m) { m.weight("mask", {3, 3}, kCausal); });
  const ModelBuilder moved = masked([](ModelBuilder& m) {
    m.weight("flat", {9}, kCausal);
    m.ints("shape", {4}, {1, 1, 3, 3});
    m.node("Reshape", {"flat", "shape"}, {"mask"});
  });
  EXPECT_EQ(role_of(direct, "mask").role, Role::constant);
  EXPECT_EQ(role_of(moved, "flat").role, Role::constant);
  EXPECT_EQ(role_of(moved, "flat").reason, "a mask; --train trains it");
  EXPECT_EQ(role_of(direct, "w").role, Role::parameter);
  ImportOptions trained;
  trained.train = {"^mask$"};
  EXPECT_EQ(role_of(direct, "mask", trained).role, Role::parameter);
}

// Such as a table of biases by relative position.
TEST(Roles, WhatAMaskIsComputedFromMayBeAWeight) {
  const ModelBuilder m = masked([](ModelBuilder& b) {
    b.weight("table", {5}, {1, 2, 3, 4, 5});
    b.ints("distances", {3, 3}, {2, 1, 0, 3, 2, 1, 4, 3, 2});
    b.node("Gather", {"table", "distances"}, {"mask"});
  });
  EXPECT_EQ(role_of(m, "table").role, Role::parameter);
}

TEST(Roles, NumbersOfTheModelAreNoWeights) {
  ModelBuilder m = model_of({"N", "2"});
  m.weight("w", {2}, {1, 2});
  m.weight("fill", {}, {0.5F});
  m.weight("low", {}, {-1});
  m.weight("power", {}, {3});
  m.weight("off_on", {2}, {0, 1});
  m.ints("pads", {4}, {0, 1, 0, 1});
  m.ints("depth", {}, {4});
  m.ints("hot", {1}, {2});
  m.node("Mul", {"x", "w"}, {"h"});
  m.node("Pad", {"h", "pads", "fill"}, {"padded"});
  m.node("Clip", {"padded", "low"}, {"clipped"});
  m.node("Pow", {"clipped", "power"}, {"powers"});
  m.node("OneHot", {"hot", "depth", "off_on"}, {"one"});
  m.node("Mul", {"powers", "one"}, {"y"});
  mean_of(m, "y");
  EXPECT_EQ(role_of(m, "w").role, Role::parameter);
  for (const auto& [name, what] : std::map<std::string, std::string>{
           {"fill", "what an axis is padded with"}, {"low", "a bound"}, {"power", "an exponent"}, {"off_on", "the values of a one-hot"}}) {
    EXPECT_EQ(role_of(m, name).role, Role::constant) << name;
    EXPECT_EQ(role_of(m, name).reason, what + "; --train trains it");
    ImportOptions trained;
    trained.train = {"^" + name + "$"};
    EXPECT_EQ(role_of(m, name, trained).role, Role::parameter) << name;
  }
}

// TorchScript's exporter keeps weights as initializers under the path of their module, and numbers of formulas in Constant nodes.
TEST(Roles, FilesOfTorchScriptTellNumbersByTheirKind) {
  for (const bool torch : {true, false}) {
    ModelBuilder m = model_of({"N", "2", "3"}, 17);
    if (torch) m.proto.set_producer_name("pytorch");
    m.weight("temp", {1}, {1});
    m.weight("onnx::Mul_9", {1}, {2});
    for (const char* name : {"/norm/Constant_output_0", "/norm/Constant_1_output_0"}) {
      onnx::TensorProto ones;
      ones.set_data_type(onnx::TensorProto::FLOAT);
      ones.add_dims(2);
      ones.add_float_data(1);
      ones.add_float_data(1);
      onnx::AttributeProto& value = *m.node("Constant", {}, {name}).add_attribute();
      value.set_name("value");
      value.set_type(onnx::AttributeProto::TENSOR);
      *value.mutable_t() = ones;
    }
    m.node("Mul", {"x", "temp"}, {"a"});
    m.node("InstanceNormalization", {"a", "/norm/Constant_output_0", "/norm/Constant_1_output_0"}, {"b"});
    m.node("Mul", {"b", "onnx::Mul_9"}, {"c"});
    m.node("Mul", {"c", "onnx::Mul_9"}, {"d"});
    m.node("Mul", {"d", "temp"}, {"y"});
    mean_of(m, "y");
    EXPECT_EQ(role_of(m, "temp").role, torch ? Role::parameter : Role::constant);
    EXPECT_EQ(role_of(m, "onnx::Mul_9").role, Role::constant);
    EXPECT_EQ(role_of(m, "/norm/Constant_output_0").role, torch ? Role::constant : Role::parameter);
    ImportOptions trained;
    trained.train = {"^/norm/Constant_output_0$"};
    EXPECT_EQ(role_of(m, "/norm/Constant_output_0", trained).role, Role::parameter);
  }
}

// y = (x · w_quantized) times the product of two scales, as ONNX Runtime's quantiser writes it.
TEST(Roles, ScalesOfIntegersAreConstants) {
  ModelBuilder m = model_of({"N", "2"}, 17);
  m.ints("w_quantized", {2, 2}, {1, 2, 3, 4});
  m.weight("w_scale", {1}, {0.5F});
  m.weight("bias", {2}, {1, 2});
  m.add("Cast", {"w_quantized"}, "w_cast", {{"to", 1}});
  m.node("MatMul", {"x", "w_cast"}, {"product"});
  m.node("Mul", {"product", "w_scale"}, {"scaled"});
  m.node("Add", {"scaled", "bias"}, {"y"});
  mean_of(m, "y");
  EXPECT_EQ(role_of(m, "w_scale").role, Role::constant);
  EXPECT_EQ(role_of(m, "w_scale").reason, "the scale of integers; --train trains it");
  EXPECT_EQ(role_of(m, "bias").role, Role::parameter);
}

OnnxNode node_of(const onnx::OpSchema& schema) {
  OnnxNode node;
  node.op = schema.Name();
  return node;
}

bool may_be_float(const onnx::OpSchema::FormalParameter& input) {
  const auto& types = input.GetTypes();
  return std::any_of(types.begin(), types.end(), [](const auto* type) { return *type == "tensor(float)"; });
}

// ONNX's own schemas say of most inputs whether they are differentiable.
TEST(Roles, PathsAreThoseOfTheSchemas) {
  using Category = onnx::OpSchema::DifferentiationCategory;
  std::set<std::string> more, fewer;
  for (const onnx::OpSchema& any : onnx::OpSchemaRegistry::get_all_schemas()) {
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(any.Name(), kMaxOpset, any.domain());
    if (schema == nullptr || !schema->domain().empty() || !find_decoder(node_of(*schema))) continue;
    const GradientPath path = find_decoder(node_of(*schema)).path;
    for (size_t i = 0; i < schema->inputs().size(); ++i) {
      const auto& input = schema->inputs()[i];
      if (!may_be_float(input)) continue;
      const std::string place = schema->Name() + " " + input.GetName();
      if (input.GetDifferentiationCategory() == Category::Differentiable && !path.leads_to(static_cast<int>(i))) fewer.insert(place);
      if (input.GetDifferentiationCategory() == Category::NonDifferentiable && path.leads_to(static_cast<int>(i))) more.insert(place);
    }
  }
  // Running statistics are not trained, and the derivative of Hardmax is zero.
  EXPECT_EQ(fewer, (std::set<std::string>{"BatchNormalization input_mean", "BatchNormalization input_var", "Hardmax input"}));
  // Schemas call bounds, states, grids and spectra "not differentiable" for which the derivative is known.
  EXPECT_EQ(more, (std::set<std::string>{"AffineGrid theta", "Clip max", "Clip min", "DFT input", "GRU initial_h", "GridSample grid",
                                         "LSTM initial_c", "LSTM initial_h", "Mod B", "OneHot values", "Pad constant_value",
                                         "RNN initial_h", "STFT signal", "Unique X"}));
}

}  // namespace
}  // namespace zeroplan
