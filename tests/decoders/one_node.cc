#include "tests/decoders/one_node.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "graph/onnx/tensor_data.h"
#include "tests/conformance/forward.h"
#include "tests/conformance/gradients.h"

namespace zeroplan {
namespace {

// The file holds single floats.
int type_in_file(DType dtype) { return is_floating(dtype) ? kOnnxFloat : onnx_type(dtype); }

std::vector<std::string> dims_of(const Shape& shape) {
  std::vector<std::string> dims;
  for (const int64_t dim : shape) dims.push_back(std::to_string(dim));
  return dims;
}

void store(const HostTensor& values, onnx::TensorProto& tensor) {
  tensor.set_data_type(type_in_file(values.dtype()));
  for (const int64_t dim : values.shape()) tensor.add_dims(dim);
  const HostTensor stored = is_floating(values.dtype()) ? values.cast(DType::f32) : values;
  tensor.set_raw_data(stored.data(), static_cast<size_t>(stored.bytes()));
}

}  // namespace

HostTensor reals(const Shape& shape, const std::vector<double>& values) { return HostTensor::of(DType::f64, shape, values); }
HostTensor integers(const Shape& shape, const std::vector<int64_t>& values, DType dtype) { return HostTensor::of(dtype, shape, values); }
HostTensor booleans(const Shape& shape, const std::vector<int64_t>& values) {
  HostTensor tensor(DType::boolean, shape);
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, static_cast<double>(values.at(i)));
  return tensor;
}

HostTensor random_reals(const Shape& shape, double low, double high, uint64_t seed) {
  HostTensor tensor(DType::f64, shape);
  SplitMix64 random(seed);
  for (int64_t i = 0; i < tensor.count(); ++i)
    tensor.set(i, static_cast<float>(low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53));
  return tensor;
}

OneNode& OneNode::input(const HostTensor& values) {
  inputs_.push_back(fmt::format("x{}", inputs_.size()));
  builder_.input(inputs_.back(), dims_of(values.shape()), type_in_file(values.dtype()));
  tensors_.push_back({inputs_.back(), type_in_file(values.dtype()), values});
  return *this;
}

OneNode& OneNode::constant(const HostTensor& values) {
  inputs_.push_back(fmt::format("x{}", inputs_.size()));
  onnx::TensorProto& tensor = *builder_.proto.mutable_graph()->add_initializer();
  tensor.set_name(inputs_.back());
  store(values, tensor);
  return *this;
}

OneNode& OneNode::absent() {
  inputs_.emplace_back();
  return *this;
}

OneNode& OneNode::outputs(int count) {
  outputs_.clear();
  for (int i = 0; i < count; ++i) outputs_.push_back(fmt::format("y{}", i));
  return *this;
}

OneNode& OneNode::set(const std::string& name, int64_t value) {
  onnx::AttributeProto& a = attributes_.emplace_back();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(value);
  return *this;
}

OneNode& OneNode::set(const std::string& name, double value) {
  onnx::AttributeProto& a = attributes_.emplace_back();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::FLOAT);
  a.set_f(static_cast<float>(value));
  return *this;
}

OneNode& OneNode::set(const std::string& name, const std::string& value) {
  onnx::AttributeProto& a = attributes_.emplace_back();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::STRING);
  a.set_s(value);
  return *this;
}

OneNode& OneNode::set_ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& a = attributes_.emplace_back();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) a.add_ints(value);
  return *this;
}

OneNode& OneNode::set(const std::string& name, const HostTensor& value) {
  onnx::AttributeProto& a = attributes_.emplace_back();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::TENSOR);
  store(value, *a.mutable_t());
  return *this;
}

std::string OneNode::save(const TemporaryFolder& folder) const {
  ModelBuilder model = builder_;
  onnx::NodeProto& node = model.node(op_, inputs_, outputs_, "node");
  for (const onnx::AttributeProto& attribute : attributes_) *node.add_attribute() = attribute;
  for (const std::string& name : outputs_) model.output(name, {});  // the type that is stated plays no part
  return model.save(folder.file("model.onnx"));
}

DataSet OneNode::data() const {
  DataSet set;
  set.inputs = tensors_;
  for (const std::string& name : outputs_) set.outputs.push_back({name, 0, {}});
  return set;
}

std::vector<HostTensor> OneNode::values() const {
  const TemporaryFolder folder;
  const ModelFile file(save(folder));
  const std::map<std::string, HostTensor> outputs = evaluate_reference(import_forward(file, data(), DType::f64));
  std::vector<HostTensor> list;
  for (const std::string& name : outputs_) list.push_back(outputs.at(name));
  return list;
}

std::vector<HostTensor> OneNode::planned() const {
  const TemporaryFolder folder;
  const ModelFile file(save(folder));
  const std::map<std::string, HostTensor> outputs = evaluate_plan(file, import_forward(file, data(), DType::f32), DType::f32);
  std::vector<HostTensor> list;
  for (const std::string& name : outputs_) list.push_back(outputs.at(name));
  return list;
}

std::string OneNode::gradient_difference() const {
  const TemporaryFolder folder;
  const ModelFile file(save(folder));
  const GradientProblem problem = make_problem(import_forward(file, data(), DType::f64));
  if (problem.leaves.empty()) return "no gradient path";
  bool zero = false;
  const std::string difference = compare_gradients(problem, built_gradients(problem), zero);
  return difference.empty() && zero ? "all gradients are zero" : difference;
}

std::string OneNode::refusal() const {
  try {
    values();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string difference(const HostTensor& got, const Shape& shape, const std::vector<double>& expected, double tolerance) {
  if (got.shape() != shape) return fmt::format("shape {}, expected {}", to_string(got.shape()), to_string(shape));
  for (int64_t i = 0; i < got.count(); ++i) {
    const double mine = got.get(i), wanted = expected.at(i);
    if (mine == wanted || (std::isnan(mine) && std::isnan(wanted))) continue;
    if (!(std::abs(mine - wanted) <= tolerance * std::max(1.0, std::abs(wanted))))
      return fmt::format("element {} is {:.9g}, expected {:.9g}", i, mine, wanted);
  }
  return "";
}

}  // namespace zeroplan
