#include "graph/onnx/folding_builder.h"

#include <numeric>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

bool FoldingBuilder::foldable(const Node& node, const std::vector<ValueId>& inputs, int64_t& bytes) const {
  if (!op_def(node.op).evaluate) return false;
  bool constant = true;
  for (ValueId id : inputs) constant = constant && (id == kNone || is_constant(id));
  const bool only_here = op_class(node.op) == OpClass::fold;
  if (!constant && only_here)
    throw Error(fmt::format("{} needs operands that are known when the model is compiled, but they depend on its data", op_name(node.op)));
  if (!constant) return false;
  for (const OutputType& type : infer_node(graph(), node))
    bytes = checked_add(bytes, checked_mul(elements(type.shape), dtype_bytes(type.dtype)));
  const bool fits = bytes <= kMaxFoldedBytes && folded_total_ + bytes <= kMaxFoldedTotal;
  if (!fits && only_here)
    throw Error(fmt::format("the constant that {} computes has {} bytes (limit {})", op_name(node.op), bytes, kMaxFoldedBytes));
  return fits;
}

std::vector<ValueId> FoldingBuilder::add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.attributes = attributes;
  node.origin = build_.origin;
  int64_t bytes = 0;
  if (!foldable(node, inputs, bytes)) return build_.add_multi(op, std::move(inputs), std::move(attributes));
  folded_total_ += bytes;
  std::vector<HostTensor> in, out;
  for (ValueId id : inputs) in.push_back(id == kNone ? HostTensor() : graph().values[id].constant);
  for (OutputType& type : infer_node(graph(), node)) out.emplace_back(type.dtype, std::move(type.shape));
  op_def(op).evaluate(node, in, out);
  std::vector<ValueId> ids;
  for (HostTensor& tensor : out) ids.push_back(build_.constant(std::move(tensor)));
  return ids;
}

ValueId FoldingBuilder::add(OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  return add_multi(op, std::move(inputs), std::move(attributes)).front();
}

ValueId FoldingBuilder::ints(const std::vector<int64_t>& values) {
  return constant(HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values));
}

ValueId FoldingBuilder::reshape(ValueId x, const Shape& target) {
  return shape(x) == target ? x : add(OpKind::reshape, {x}, {{Attr::shape, target}});
}

ValueId FoldingBuilder::transpose(ValueId x, const std::vector<int64_t>& permutation) {
  std::vector<int64_t> identity(permutation.size());
  std::iota(identity.begin(), identity.end(), 0);
  return permutation == identity && permutation.size() == shape(x).size() ? x
                                                                          : add(OpKind::transpose, {x}, {{Attr::permutation, permutation}});
}

ValueId FoldingBuilder::broadcast(ValueId x, const Shape& target) {
  return shape(x) == target ? x : add(OpKind::broadcast, {x}, {{Attr::shape, target}});
}

ValueId FoldingBuilder::cast(ValueId x, DType to) {
  return dtype(x) == to ? x : add(OpKind::cast, {x}, {{Attr::dtype, std::string(dtype_name(to))}});
}

}  // namespace zeroplan
