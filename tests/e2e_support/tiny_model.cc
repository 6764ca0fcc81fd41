#include "tests/e2e_support/tiny_model.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "base/random.h"
#include "graph/onnx/tensor_data.h"
#include "tests/e2e_support/golden.h"

namespace zeroplan {
namespace {

void set_type(onnx::ValueInfoProto& info, const std::string& name, DType dtype, const std::vector<TinyDim>& dims) {
  info.set_name(name);
  onnx::TypeProto_Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type(dtype));
  onnx::TensorShapeProto& shape = *type.mutable_shape();  // present also for a scalar
  for (const TinyDim& dim : dims) {
    if (dim.symbol.empty())
      shape.add_dim()->set_dim_value(dim.value);
    else
      shape.add_dim()->set_dim_param(dim.symbol);
  }
}

void set_tensor(onnx::TensorProto& tensor, const HostTensor& values) {
  tensor.set_data_type(onnx_type(values.dtype()));
  for (const int64_t size : values.shape()) tensor.add_dims(size);
  tensor.set_raw_data(values.data(), static_cast<size_t>(values.bytes()));
}

struct AttributeWriter {
  onnx::AttributeProto& to;
  void operator()(int64_t value) const { to.set_type(onnx::AttributeProto::INT), to.set_i(value); }
  void operator()(double value) const { to.set_type(onnx::AttributeProto::FLOAT), to.set_f(static_cast<float>(value)); }
  void operator()(const std::string& value) const { to.set_type(onnx::AttributeProto::STRING), to.set_s(value); }
  void operator()(const std::vector<int64_t>& value) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (const int64_t i : value) to.add_ints(i);
  }
};

}  // namespace

TinyModel::TinyModel() : model_(std::make_unique<onnx::ModelProto>()) {
  model_->set_ir_version(8);
  model_->set_producer_name("test");
  onnx::OperatorSetIdProto* opset = model_->add_opset_import();
  opset->set_domain("");
  opset->set_version(18);
  graph().set_name("tiny");
}

TinyModel::TinyModel(TinyModel&&) noexcept = default;
TinyModel::~TinyModel() = default;

onnx::GraphProto& TinyModel::graph() { return *model_->mutable_graph(); }

TinyModel& TinyModel::input(const std::string& name, DType dtype, const std::vector<TinyDim>& dims) {
  set_type(*graph().add_input(), name, dtype, dims);
  return *this;
}

TinyModel& TinyModel::output(const std::string& name, const std::vector<TinyDim>& dims) {
  set_type(*graph().add_output(), name, DType::f32, dims);
  return *this;
}

TinyModel& TinyModel::initializer(const std::string& name, const HostTensor& values) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  set_tensor(tensor, values);
  return *this;
}

TinyModel& TinyModel::weight(const std::string& name, const Shape& shape, const std::vector<double>& values) {
  return initializer(name, HostTensor::of(DType::f32, shape, values));
}

TinyModel& TinyModel::ints(const std::string& name, const std::vector<int64_t>& values) {
  return initializer(name, HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values));
}

TinyModel& TinyModel::constant(const std::string& name, const HostTensor& value) {
  node("Constant", {}, {name});
  onnx::AttributeProto& attribute = *graph().mutable_node(graph().node_size() - 1)->add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  set_tensor(*attribute.mutable_t(), value);
  return *this;
}

TinyModel& TinyModel::node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                           const std::vector<TinyAttribute>& attributes) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  node.set_name("node_" + outputs.at(0));
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
  return *this;
}

void TinyModel::save(const std::string& path) const { write_file(path, model_->SerializeAsString()); }

namespace {

uint64_t mixed(int seed, int64_t index) {
  return SplitMix64::mix((static_cast<uint64_t>(seed) << 32) + static_cast<uint64_t>(index + 1) * SplitMix64::kStep);
}

}  // namespace

std::vector<double> random_values(int64_t count, int seed, double scale) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(scale * (static_cast<double>(mixed(seed, i) >> 11) * 0x1p-52 - 1));
  return values;
}

std::vector<double> random_integers(int64_t count, int seed, int limit) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(mixed(seed, i) % static_cast<uint64_t>(2 * limit + 1)) - limit);
  return values;
}

HostTensor random_tensor(const Shape& shape, int seed, double scale) {
  return HostTensor::of(DType::f32, shape, random_values(elements(shape), seed, scale));
}

TinyModel tiny_mlp(int layers, int64_t width, bool integers) {
  TinyModel model;
  model.input("x", DType::f32, {"N", width}).input("t", DType::f32, {"N", width});
  std::string h = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("layers.{}", i);
    const int seed = 100 + 2 * i;
    model.weight(layer + ".weight", {width, width},
                 integers ? random_integers(width * width, seed, 1) : random_values(width * width, seed, 0.6));
    model.weight(layer + ".bias", {width}, integers ? random_integers(width, seed + 1, 2) : random_values(width, seed + 1, 0.2));
    model.node("MatMul", {h, layer + ".weight"}, {layer + ".product"}).node("Add", {layer + ".product", layer + ".bias"}, {layer + ".sum"});
    h = layer + ".sum";
    if (i + 1 == layers) continue;
    model.node("Relu", {h}, {layer + ".out"});
    h = layer + ".out";
  }
  model.node("Sub", {h, "t"}, {"difference"}).node("Mul", {"difference", "difference"}, {"square"});
  model.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TinyModel tiny_chain(const std::vector<int64_t>& sizes) {
  TinyModel model;
  model.input("x", DType::f32, {"N", sizes[0]});
  std::string h = "x";
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::string w = fmt::format("w{}", i), next = fmt::format("h{}", i);
    model.weight(w, {sizes[i], sizes[i + 1]}, random_values(sizes[i] * sizes[i + 1], static_cast<int>(i), 0.2));
    model.node("MatMul", {h, w}, {next});
    h = next;
  }
  model.node("ReduceMean", {h}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TinyModel tiny_mixer(int64_t width) {
  TinyModel model;
  model.input("x", DType::f32, {"N", width}).weight("w", {width}, random_values(width, 9)).node("Mul", {"x", "w"}, {"y"});
  model.ints("first", {0}).node("ReduceMean", {"y", "first"}, {"centre"}).node("Sub", {"y", "centre"}, {"rest"});
  model.node("Mul", {"rest", "rest"}, {"square"}).node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

TinyModel tiny_linear(const Shape& shape, const std::vector<double>& start) {
  TinyModel model;
  std::vector<TinyDim> dims = {"N"};
  std::vector<int64_t> axes;
  for (const int64_t size : shape) {
    axes.push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(size);
  }
  model.input("x", DType::f32, dims).weight("w", shape, start);
  model.node("Mul", {"w", "x"}, {"y"});
  std::string y = "y";
  if (!axes.empty()) {
    model.ints("axes", axes).node("ReduceSum", {"y", "axes"}, {"per_sample"}, {{"keepdims", int64_t{0}}});
    y = "per_sample";
  }
  model.node("ReduceMean", {y}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

}  // namespace zeroplan
