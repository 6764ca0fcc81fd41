#include "graph/onnx/folding_builder.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/extent.h"
#include "base/type_name.h"
#include "graph/onnx/limits.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

bool FoldingBuilder::foldable(const Node& node, const std::vector<ValueId>& inputs, Cost& cost) const {
  const OpDef& def = op_def(node.op);
  if (!def.evaluate) return false;
  bool constant = true;
  for (ValueId id : inputs) constant = constant && (id == kNone || is_constant(id));
  const bool only_here = op_class(node.op) == OpClass::fold;
  if (!constant && only_here)
    throw Error(fmt::format("{} needs operands that are known when the model is compiled, but they depend on its data", op_name(node.op)));
  if (!constant) return false;
  for (const OutputType& type : infer_node(graph(), node)) {
    cost.bytes += extent(type.shape) * dtype_bytes(type.dtype);
    cost.work += static_cast<double>(extent(type.shape));
  }
  for (ValueId id : inputs)
    if (id != kNone) cost.work = std::max(cost.work, static_cast<double>(extent(shape(id))));
  if (def.flops) cost.work = std::max(cost.work, def.flops(graph(), node));
  const bool small = cost.bytes <= kMaxFoldedBytes && folded_total_ + cost.bytes <= kMaxFoldedTotal;
  const bool fits = small && cost.work <= kMaxFoldedWork && work_total_ + cost.work <= kMaxFoldedWorkTotal;
  if (!fits && only_here)
    throw Error(fmt::format("the constant that {} computes has {} bytes (limit {})", op_name(node.op), cost.bytes, kMaxFoldedBytes));
  return fits;
}

std::vector<ValueId> FoldingBuilder::add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes) {
  if (graph().nodes.size() >= kMaxGraphNodes)
    throw Error(
        fmt::format("the model becomes more than {} nodes here; export it with fewer, or with fewer steps of its loops", kMaxGraphNodes));
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.attributes = attributes;
  node.origin = build_.origin;
  Cost cost;
  if (!foldable(node, inputs, cost)) {
    std::vector<ValueId> ids = build_.add_multi(op, std::move(inputs), std::move(attributes));
    rounded_.note(graph(), graph().nodes.back());
    return ids;
  }
  folded_total_ += cost.bytes;
  work_total_ += cost.work;
  std::vector<HostTensor> in, out;
  for (ValueId id : inputs) in.push_back(id == kNone ? HostTensor() : graph().values[id].constant);
  for (OutputType& type : infer_node(graph(), node)) out.emplace_back(type.dtype, std::move(type.shape));
  op_def(op).evaluate(node, in, out);
  std::vector<ValueId> ids;
  for (HostTensor& tensor : out) ids.push_back(constant(std::move(tensor)));
  return ids;
}

ValueId FoldingBuilder::constant(HostTensor tensor) {
  constant_bytes_ += tensor.bytes();
  return build_.constant(std::move(tensor));
}

ValueId FoldingBuilder::scalar(double value, DType dtype) {
  HostTensor tensor(dtype, {});
  tensor.set(0, value);
  if (!is_floating(dtype) && tensor.get(0) != value)
    throw Error(fmt::format("it computes with {}, which {} does not hold; insert a Cast to a floating-point type in front of it", value,
                            type_name(dtype)));
  return constant(std::move(tensor));
}

ValueId FoldingBuilder::filled(double value, const Shape& shape, DType dtype) {
  return add(OpKind::fill, {}, fill_attributes(value, shape, dtype));
}

void FoldingBuilder::check_room(const Shape& shape, DType dtype) {
  const int64_t bytes = extent(shape) * dtype_bytes(dtype);
  if (bytes > kMaxFoldedBytes || folded_total_ + bytes > kMaxFoldedTotal)
    throw Error(fmt::format("it needs a table of {} {} elements, which is more than {} MiB; use smaller dimensions", to_string(shape),
                            dtype_name(dtype), (bytes > kMaxFoldedBytes ? kMaxFoldedBytes : kMaxFoldedTotal) >> 20));
  folded_total_ += bytes;
}

HostTensor FoldingBuilder::table(DType dtype, const Shape& shape) {
  check_room(shape, dtype);
  return HostTensor(dtype, shape);
}

std::vector<int64_t> FoldingBuilder::list(int64_t count) {
  check_room({count}, DType::i64);
  return std::vector<int64_t>(static_cast<size_t>(count));
}

std::vector<int64_t> FoldingBuilder::counting(int64_t count) {
  std::vector<int64_t> numbers = list(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
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

ValueId FoldingBuilder::cast(ValueId x, DType to) { return dtype(x) == to ? x : add(OpKind::cast, {x}, {{Attr::dtype, dtype_value(to)}}); }

}  // namespace zeroplan
