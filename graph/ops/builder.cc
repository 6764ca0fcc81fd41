#include "graph/ops/builder.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

ValueId Builder::add(OpKind op, std::vector<ValueId> inputs, Attributes attributes, std::string name) {
  const std::vector<ValueId> outputs = add_multi(op, std::move(inputs), std::move(attributes), {std::move(name)});
  check(outputs.size() == 1, "Builder::add of an op that has not exactly one output");
  return outputs[0];
}

std::vector<ValueId> Builder::add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes, std::vector<std::string> names) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.program = program;
  node.backward = backward;
  node.origin = origin;
  const std::vector<OutputType> types = infer_node(graph_, node);
  for (size_t i = 0; i < types.size(); ++i) {
    Value value;
    value.name = i < names.size() && !names[i].empty() ? names[i] : fmt::format("{}_{}", op_name(op), graph_.values.size());
    value.dtype = types[i].dtype;
    value.shape = types[i].shape;
    node.outputs.push_back(graph_.add_value(std::move(value)));
  }
  std::vector<ValueId> outputs = node.outputs;
  graph_.add_node(std::move(node));
  return outputs;
}

ValueId Builder::constant(HostTensor tensor, std::string name) {
  Value value;
  value.name = name.empty() ? fmt::format("constant_{}", graph_.values.size()) : std::move(name);
  value.dtype = tensor.dtype();
  value.shape = tensor.shape();
  value.kind = ValueKind::constant;
  value.constant = std::move(tensor);
  return graph_.add_value(std::move(value));
}

ValueId Builder::scalar(double value, DType dtype) {
  HostTensor tensor(dtype, {});
  tensor.set(0, value);
  return constant(std::move(tensor));
}

ValueId Builder::filled(double value, const Shape& shape, DType dtype) {
  return add(OpKind::fill, {}, fill_attributes(value, shape, dtype));
}

ValueId Builder::reshape(ValueId x, const Shape& target) {
  if (shape(x) == target) return x;
  return add(OpKind::reshape, {x}, {{Attr::shape, target}});
}

ValueId Builder::cast(ValueId x, DType to) { return dtype(x) == to ? x : add(OpKind::cast, {x}, {{Attr::dtype, dtype_value(to)}}); }

ValueId Builder::transpose(ValueId x, const std::vector<int64_t>& permutation) {
  bool identity = permutation.size() == shape(x).size();
  for (size_t i = 0; identity && i < permutation.size(); ++i) identity = permutation[i] == static_cast<int64_t>(i);
  if (identity) return x;
  return add(OpKind::transpose, {x}, {{Attr::permutation, permutation}});
}

ValueId Builder::transpose_last_two(ValueId x) {
  const size_t rank = shape(x).size();
  check(rank >= 2, "transpose_last_two needs rank 2 or more");
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return transpose(x, permutation);
}

ValueId Builder::sum_to(ValueId x, const Shape& target) {
  const Shape from = shape(x);
  check(broadcast_shapes(from, target) == from, "sum_to: the target does not broadcast to the operand");
  const size_t leading = from.size() - target.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && (i < leading || target[i - leading] == 1)) axes.push_back(static_cast<int64_t>(i));
  // Keeping the axes makes the reshape below needless where the rank stays; dropping them, where only leading ones go.
  if (!axes.empty()) x = add(OpKind::reduce_sum, {x}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{leading == 0}}});
  return reshape(x, target);
}

}  // namespace zeroplan
