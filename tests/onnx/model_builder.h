#pragma once
// Small models built in a test.
#include <onnx/onnx_pb.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/onnx/write_bytes.h"

namespace zeroplan {

class ModelBuilder {
 public:
  explicit ModelBuilder(int opset = 18) {
    proto.set_ir_version(8);
    proto.mutable_graph()->set_name("test");
    proto.add_opset_import()->set_version(opset);
  }

  // A dim is a number or a symbol.
  ModelBuilder& input(const std::string& name, std::vector<std::string> dims, int type = onnx::TensorProto::FLOAT) {
    describe(*proto.mutable_graph()->add_input(), name, dims, type);
    return *this;
  }
  ModelBuilder& output(const std::string& name, std::vector<std::string> dims, int type = onnx::TensorProto::FLOAT) {
    describe(*proto.mutable_graph()->add_output(), name, dims, type);
    return *this;
  }
  onnx::TensorProto& weight(const std::string& name, std::vector<int64_t> dims, const std::vector<float>& values) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    fill(tensor, dims, values);
    tensor.set_name(name);
    return tensor;
  }
  onnx::TensorProto& ints(const std::string& name, std::vector<int64_t> dims, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    for (int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
    return tensor;
  }
  onnx::NodeProto& node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                        const std::string& name = {}) {
    onnx::NodeProto& n = *proto.mutable_graph()->add_node();
    n.set_op_type(op);
    n.set_name(name.empty() ? "node_" + outputs[0] : name);
    for (const std::string& i : inputs) n.add_input(i);
    for (const std::string& o : outputs) n.add_output(o);
    return n;
  }
  // One output and integer attributes.
  ModelBuilder& add(const std::string& op, std::vector<std::string> inputs, const std::string& to,
                    const std::map<std::string, int64_t>& attributes = {}) {
    onnx::NodeProto& n = node(op, std::move(inputs), {to});
    for (const auto& [name, value] : attributes) set(n, name, value);
    return *this;
  }
  // Constant nodes.
  ModelBuilder& constant(const std::string& name, float value) {
    attribute(node("Constant", {}, {name}), "value_float", onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  ModelBuilder& constant(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    fill(*attribute(node("Constant", {}, {name}), "value", onnx::AttributeProto::TENSOR).mutable_t(), dims, values);
    return *this;
  }
  static void set(onnx::NodeProto& n, const std::string& name, int64_t value) {
    attribute(n, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void set(onnx::NodeProto& n, const std::string& name, const std::vector<int64_t>& values) {
    auto& a = attribute(n, name, onnx::AttributeProto::INTS);
    for (const int64_t value : values) a.add_ints(value);
  }
  static void set(onnx::NodeProto& n, const std::string& name, const std::string& text) {
    attribute(n, name, onnx::AttributeProto::STRING).set_s(text);
  }
  static void fill(onnx::TensorProto& tensor, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  }
  std::string bytes() const { return proto.SerializeAsString(); }
  std::string save(const std::string& path) const {
    write_bytes(path, bytes());
    return path;
  }

  onnx::ModelProto proto;

 private:
  static onnx::AttributeProto& attribute(onnx::NodeProto& n, const std::string& name, onnx::AttributeProto::AttributeType type) {
    auto& a = *n.add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
  }
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::string>& dims, int type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const std::string& dim : dims) {
      auto& d = *tensor.mutable_shape()->add_dim();
      if (dim.find_first_not_of("0123456789") == std::string::npos)
        d.set_dim_value(std::stoll(dim));
      else
        d.set_dim_param(dim);
    }
  }
};

// x[N,3] · w[3,2] + b[2], mean of squares.
inline ModelBuilder small_regression(int opset = 18) {
  ModelBuilder m(opset);
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  m.weight("b", {2}, {0.5f, -0.5f});
  m.node("MatMul", {"x", "w"}, {"xw"});
  m.node("Add", {"xw", "b"}, {"y"});
  m.node("Mul", {"y", "y"}, {"square"});
  m.add("ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
  return m;
}

}  // namespace zeroplan
