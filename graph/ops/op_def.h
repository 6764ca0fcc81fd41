#pragma once
// What the compiler knows of an operator. One definition per op, in graph/ops/<op or family>.cc; ops.def lists the names, and an
// op without definition does not link.
#include <span>
#include <utility>
#include <vector>

#include "base/device_kind.h"
#include "graph/ir/graph.h"
#include "graph/ops/builder.h"

namespace zeroplan {

struct OutputType {
  DType dtype;
  Shape shape;
};

// What an op's vjp sees: output gradients (kNone = zero) in, input gradients out, by building ordinary nodes.
class VjpContext {
 public:
  VjpContext(Builder& build, const Node& node, std::vector<ValueId> output_gradients, std::vector<bool> needs)
      : build(build),
        node(node),
        output_gradients_(std::move(output_gradients)),
        needs_(std::move(needs)),
        gradients_(node.inputs.size(), kNone) {}

  Builder& build;
  const Node& node;
  ValueId input(int i) const { return i < static_cast<int>(node.inputs.size()) ? node.inputs[i] : kNone; }
  ValueId output(int i) const { return node.outputs[i]; }
  ValueId output_gradient(int i = 0) const { return output_gradients_[i]; }
  bool needs(int i) const { return i < static_cast<int>(needs_.size()) && needs_[i]; }
  void set(int i, ValueId gradient) { gradients_[i] = gradient; }
  const std::vector<ValueId>& gradients() const { return gradients_; }

 private:
  std::vector<ValueId> output_gradients_;
  std::vector<bool> needs_;
  std::vector<ValueId> gradients_;
};

enum class OpClass : uint8_t { kernel, view, fold, comm, host };

struct OpDef {
  OpKind kind{};
  // The only shape and type rule. Throws Error (message alone; the caller adds the node) on operands it does not accept.
  std::vector<OutputType> (*infer)(const Graph&, const Node&) = nullptr;
  // nullptr: no gradient; asking for one is an error that names the node.
  void (*vjp)(VjpContext&) = nullptr;
  // Naive reference in double (integers exact), for constant folding and as the judge of kernels. `out` has the inferred types.
  void (*evaluate)(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) = nullptr;
  // (output, input) pairs that may share bytes: the kernel reads each element before it writes it. Where shapes and dtypes are equal
  // and the input is contiguous; a broadcast operand is never shared.
  std::vector<std::pair<int, int>> in_place = {};
  // May input i be a view with these strides? nullptr: contiguous only.
  bool (*accepts)(const Graph&, const Node&, int input, const Shape&, const Strides&) = nullptr;
  // Scratch bytes that the kernel asks for, with `threads` threads. nullptr: none.
  int64_t (*workspace)(const Graph&, const Node&, int threads) = nullptr;
  int64_t (*cuda_workspace)(const Graph&, const Node&) = nullptr;  // of the CUDA kernel
  // Floating-point operations; nullptr: one per output element.
  double (*flops)(const Graph&, const Node&) = nullptr;
  // View ops only: strides and element offset of output `output` relative to the input's storage. Throws Error on attributes that do not
  // fit the input. unit_view has none: its extents are in the unit.
  void (*view)(const Node&, int output, const Shape& in_shape, const Strides& in_strides, Strides& out_strides, int64_t& out_offset,
               bool& possible) = nullptr;
};

const OpDef& op_def(OpKind kind);
std::string_view op_name(OpKind kind);
OpKind parse_op(std::string_view name);  // throws Error
OpClass op_class(OpKind kind);
std::vector<OutputType> infer_node(const Graph& graph, const Node& node);  // op_def().infer with the node's name added to errors
// Runs every node of `program` with the reference evaluators; `values` holds inputs, parameters and state by id and receives the rest.
void evaluate_program(const Graph& graph, Program program, std::map<ValueId, HostTensor>& values);
// One node alone: output types by infer, contents by its evaluator; throws Error where it has none. Missing operands: empty tensors.
std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, std::span<const HostTensor> in);
// Scratch bytes of the node's kernel on such a device.
int64_t workspace_bytes(const Graph& graph, const Node& node, DeviceKind device, int threads);
// Attribute `dtype` of cast and fill is the type's name.
Attributes::Value dtype_value(DType dtype);
DType dtype_attribute(const Attributes& attributes);
Attributes fill_attributes(double value, const Shape& shape, DType dtype);

}  // namespace zeroplan
