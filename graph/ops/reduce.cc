// reduce_sum, reduce_mean, reduce_max, reduce_prod: x → y over `axes` (sorted, non-negative); kept as size 1 with keepdims. dtype: sums and
// means of 16-bit elements in f32.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/cuda_reduce_chunks.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

bool keepdims(const Node& node) { return node.attributes.get_int(Attr::keepdims, 0) != 0; }
const std::vector<int64_t>& axes_of(const Node& node) { return node.attributes.get_ints(Attr::axes); }

// Shape of the result with the reduced axes kept as 1.
Shape kept_shape(const Node& node, Shape shape) {
  for (const int64_t axis : axes_of(node)) shape[axis] = 1;
  return shape;
}

void check_axes(const Node& node, const Value& x) {
  const auto& axes = axes_of(node);
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool rising = i == 0 || axes[i] > axes[i - 1];
    if (rising && axes[i] >= 0 && axes[i] < static_cast<int64_t>(x.shape.size())) continue;
    throw Error(fmt::format("axes {} must rise and lie within the rank of x '{}' {}", to_string(axes), x.name, to_string(x.shape)));
  }
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  if (!is_integer(x.dtype) || node.op == OpKind::reduce_mean) floating_operand(graph, node, 0, "x");
  check_axes(node, x);
  const bool needs_one = node.op == OpKind::reduce_mean || node.op == OpKind::reduce_max;
  if (needs_one && elements(x.shape) == 0) throw Error(fmt::format("x '{}' has no elements", x.name));
  const bool sums = node.op == OpKind::reduce_sum || node.op == OpKind::reduce_mean;
  const DType dtype = sums ? sum_dtype(node, x.dtype) : x.dtype;
  if (keepdims(node)) return {{dtype, kept_shape(node, x.shape)}};
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i)
    if (!std::binary_search(axes_of(node).begin(), axes_of(node).end(), static_cast<int64_t>(i))) shape.push_back(x.shape[i]);
  return {{dtype, shape}};
}

// The kept shape broadcasts to x's, so a broadcast index into it is the result's element.
template <typename T, typename Read>
std::vector<T> accumulate(const Node& node, const HostTensor& x, int64_t count, Read read) {
  const Shape kept = kept_shape(node, x.shape());
  std::vector<T> result(count, node.op == OpKind::reduce_prod ? T{1} : T{});
  std::vector<bool> seen(count, false);
  for_each_index(x.shape(), [&](const Index& index, int64_t n) {
    const int64_t k = broadcast_index(index, kept);
    const T value = read(n);
    if (node.op == OpKind::reduce_prod)
      result[k] *= value;
    else if (node.op != OpKind::reduce_max)
      result[k] += value;
    else if (!seen[k] || value > result[k] || value != value)
      result[k] = value;
    seen[k] = true;
  });
  return result;
}

std::vector<int64_t> wrapped(const std::vector<uint64_t>& bits) { return {bits.begin(), bits.end()}; }

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  const int64_t count = out[0].count();
  if (is_integer(x.dtype())) {
    const auto sums = node.op == OpKind::reduce_max
                          ? accumulate<int64_t>(node, x, count, [&](int64_t i) { return x.get_int(i); })
                          : wrapped(accumulate<uint64_t>(node, x, count, [&](int64_t i) { return static_cast<uint64_t>(x.get_int(i)); }));
    for (int64_t i = 0; i < count; ++i) out[0].set_int(i, sums[i]);
    return;
  }
  const auto sums = accumulate<double>(node, x, count, [&](int64_t i) { return x.get(i); });
  const double scale = node.op == OpKind::reduce_mean ? static_cast<double>(x.count()) / static_cast<double>(count) : 1;
  for (int64_t i = 0; i < count; ++i) out[0].set(i, sums[i] / scale);
}

// A value of the result's shape, seen in x's shape.
ValueId spread(VjpContext& c, ValueId value) {
  const Shape shape = c.build.shape(c.input(0));
  const ValueId kept = c.build.reshape(value, kept_shape(c.node, shape));
  return c.build.add(OpKind::broadcast, {kept}, {{Attr::shape, shape}});
}

void sum_vjp(VjpContext& c) { c.set(0, spread(c, c.output_gradient())); }

void mean_vjp(VjpContext& c) {
  const double count = static_cast<double>(elements(c.build.shape(c.input(0)))) / static_cast<double>(elements(c.build.shape(c.output(0))));
  const ValueId scale = c.build.scalar(1 / count, c.build.dtype(c.input(0)));
  c.set(0, spread(c, c.build.add(OpKind::mul, {c.output_gradient(), scale})));
}

// Equal maxima share the gradient evenly.
void max_vjp(VjpContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.build.shape(x);
  const ValueId hit = c.build.add(OpKind::equal, {x, spread(c, c.output(0))});
  const ValueId mask = c.build.add(OpKind::cast, {hit}, {{Attr::dtype, dtype_value(c.build.dtype(x))}});
  const ValueId ties = c.build.add(OpKind::reduce_sum, {mask}, {{Attr::axes, axes_of(c.node)}, {Attr::keepdims, int64_t{1}}});
  const ValueId dy = c.build.reshape(c.output_gradient(), kept_shape(c.node, shape));
  c.set(0, c.build.add(OpKind::mul, {mask, c.build.add(OpKind::div, {dy, ties})}));
}

// dy · the product of all other factors, right also where some of them are zero.
void prod_vjp(VjpContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.build.shape(x);
  const DType dtype = c.build.dtype(x);
  const ValueId zero = c.build.scalar(0, dtype), one = c.build.scalar(1, dtype);
  const Attributes kept = {{Attr::axes, axes_of(c.node)}, {Attr::keepdims, int64_t{1}}};
  const ValueId is_zero = c.build.add(OpKind::equal, {x, zero});
  const ValueId mask = c.build.add(OpKind::cast, {is_zero}, {{Attr::dtype, dtype_value(dtype)}});
  const ValueId rest = c.build.add(OpKind::where, {is_zero, one, x});
  const ValueId product = c.build.add(OpKind::reduce_prod, {rest}, kept);
  const ValueId others = c.build.add(OpKind::sub, {c.build.add(OpKind::reduce_sum, {mask}, kept), mask});
  const ValueId dy = c.build.reshape(c.output_gradient(), kept_shape(c.node, shape));
  const ValueId slope = c.build.add(OpKind::div, {c.build.add(OpKind::mul, {dy, product}), rest});
  c.set(0, c.build.add(OpKind::where, {c.build.add(OpKind::equal, {others, zero}), slope, zero}));
}

int64_t cuda_workspace(const Graph& graph, const Node& node) {
  const int64_t kept = elements(graph.values[node.outputs[0]].shape);
  return kept == 0 ? 0 : cuda_reduce_workspace(kept, elements(graph.values[node.inputs[0]].shape) / kept);
}

double flops(const Graph& graph, const Node& node) { return static_cast<double>(elements(graph.values[node.inputs[0]].shape)); }

OpDef reduce_def(void (*vjp)(VjpContext&)) {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.accepts = accept_any_strides;
  def.cuda_workspace = cuda_workspace;
  def.flops = flops;
  return def;
}

}  // namespace

OpDef reduce_sum_def() { return reduce_def(sum_vjp); }
OpDef reduce_mean_def() { return reduce_def(mean_vjp); }
OpDef reduce_max_def() { return reduce_def(max_vjp); }
OpDef reduce_prod_def() { return reduce_def(prod_vjp); }

}  // namespace zeroplan
