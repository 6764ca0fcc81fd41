#pragma once
// A model of one node: its values by the reference evaluators, its gradients against differences.
#include <string>
#include <vector>

#include "base/host_tensor.h"
#include "base/temporary_folder.h"
#include "tests/conformance/suite.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {

HostTensor reals(const Shape& shape, const std::vector<double>& values);
HostTensor integers(const Shape& shape, const std::vector<int64_t>& values, DType dtype = DType::i64);
HostTensor booleans(const Shape& shape, const std::vector<int64_t>& values);
// Seeded, between low and high, none of them alike.
HostTensor random_reals(const Shape& shape, double low = -2, double high = 2, uint64_t seed = 1);

class OneNode {
 public:
  explicit OneNode(const std::string& op, int opset = 22) : builder_(opset), op_(op) {}
  OneNode& input(const HostTensor& values);     // data; floating ones are float32
  OneNode& constant(const HostTensor& values);  // an initializer
  OneNode& absent();
  OneNode& outputs(int count);
  OneNode& set(const std::string& name, int64_t value);
  OneNode& set(const std::string& name, double value);
  OneNode& set(const std::string& name, int value) { return set(name, int64_t{value}); }
  OneNode& set(const std::string& name, const std::string& value);
  OneNode& set(const std::string& name, const HostTensor& value);
  OneNode& set_ints(const std::string& name, const std::vector<int64_t>& values);
  OneNode& set(const std::string& name, const char* value) { return set(name, std::string(value)); }

  // Computed in double.
  std::vector<HostTensor> values() const;
  HostTensor value() const { return values().front(); }
  // By the kernels of a compiled plan, in single precision.
  std::vector<HostTensor> planned() const;
  // Of a weighted sum of all floating-point outputs by all floating-point inputs; empty where built and numeric ones agree.
  std::string gradient_difference() const;
  std::string refusal() const;  // what the import says; empty where it says nothing

 private:
  std::string save(const TemporaryFolder& folder) const;
  DataSet data() const;

  ModelBuilder builder_;
  std::string op_;
  std::vector<std::string> inputs_, outputs_ = {"y0"};
  std::vector<SuiteTensor> tensors_;
  std::vector<onnx::AttributeProto> attributes_;
};

// Shape and values, each within `tolerance` relative to max(1, |expected|); NaN and infinities are equal to themselves.
std::string difference(const HostTensor& got, const Shape& shape, const std::vector<double>& expected, double tolerance = 1e-6);

}  // namespace zeroplan
