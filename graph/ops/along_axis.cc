// cumsum: x → sums up to each element of `axis` (without it: exclusive; from the end: reverse). arg_max: x → i64 place of the largest along
// `axis`, the first or (select_last) last of equal ones. top_k: x → the k largest (or smallest) in order, and their i64 places; of equal
// ones the first comes first. A nan is above all numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/cuda_top_k_lists.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/workspace.h"

namespace zeroplan {

namespace {

struct Line {
  int64_t first, step, size;  // elements
  int64_t at(int64_t i) const { return first + i * step; }
};

// Calls fn(line of x along the axis, number of the line) for every line.
template <typename Fn>
void for_each_line(const Shape& shape, int64_t axis, Fn fn) {
  const int64_t size = shape[axis];
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t lines = size == 0 ? 0 : elements(shape) / size;
  for (int64_t n = 0; n < lines; ++n) fn(Line{n / inner * size * inner + n % inner, inner, size}, n);
}

std::vector<OutputType> infer_cumsum(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  if (!is_integer(x.dtype)) floating_operand(graph, node, 0, "x");
  expect_rank(x, 1, kMaxRank, "x");
  axis_attribute(node, x.shape);
  return {{x.dtype, x.shape}};
}

template <typename T, typename Read, typename Put>
void sum_line(const Node& node, const Line& line, Read read, Put put) {
  const bool exclusive = node.attributes.get_int(Attr::exclusive, 0) != 0, reverse = node.attributes.get_int(Attr::reverse, 0) != 0;
  T sum{};
  for (int64_t i = 0; i < line.size; ++i) {
    const int64_t at = line.at(reverse ? line.size - 1 - i : i);
    const T before = sum;
    sum += read(at);
    put(at, exclusive ? before : sum);
  }
}

void evaluate_cumsum(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  for_each_line(x.shape(), axis_attribute(node, x.shape()), [&](const Line& line, int64_t) {
    if (is_integer(x.dtype()))
      sum_line<uint64_t>(
          node, line, [&](int64_t at) { return static_cast<uint64_t>(x.get_int(at)); },
          [&](int64_t at, uint64_t sum) { out[0].set_int(at, static_cast<int64_t>(sum)); });
    else
      sum_line<double>(
          node, line, [&](int64_t at) { return x.get(at); }, [&](int64_t at, double sum) { out[0].set(at, sum); });
  });
}

void cumsum_vjp(VjpContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.set(Attr::reverse, int64_t{attributes.get_int(Attr::reverse, 0) == 0});
  c.set(0, c.build.add(OpKind::cumsum, {c.output_gradient()}, attributes));
}

std::vector<OutputType> infer_arg_max(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  expect_rank(x, 1, kMaxRank, "x");
  const int64_t axis = axis_attribute(node, x.shape);
  if (x.shape[axis] == 0) throw Error(fmt::format("x '{}' {} has nothing along axis {}", x.name, to_string(x.shape), axis));
  Shape shape = x.shape;
  if (node.attributes.get_int(Attr::keepdims, 0) != 0)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return {{DType::i64, shape}};
}

// Is element i above element k?
bool above(const HostTensor& x, int64_t i, int64_t k) {
  if (is_floating(x.dtype())) return x.get(i) > x.get(k) || (std::isnan(x.get(i)) && !std::isnan(x.get(k)));
  if (x.dtype() == DType::u64) return static_cast<uint64_t>(x.get_int(i)) > static_cast<uint64_t>(x.get_int(k));
  return int_at(x, i) > int_at(x, k);
}

void evaluate_arg_max(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const bool last = node.attributes.get_int(Attr::select_last, 0) != 0;
  for_each_line(in[0].shape(), axis_attribute(node, in[0].shape()), [&](const Line& line, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < line.size; ++i)
      if (last ? !above(in[0], line.at(best), line.at(i)) : above(in[0], line.at(i), line.at(best))) best = i;
    out[0].set_int(n, best);
  });
}

std::vector<OutputType> infer_top_k(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = operand(graph, node, 0, "x");
  expect_rank(x, 1, kMaxRank, "x");
  Shape shape = x.shape;
  int64_t& size = shape[axis_attribute(node, x.shape)];
  const int64_t k = node.attributes.get_int(Attr::k);
  if (k < 0 || k > size) throw Error(fmt::format("k is {}, but the axis of x '{}' has {} elements", k, x.name, size));
  size = k;
  return {{x.dtype, shape}, {DType::i64, shape}};
}

void evaluate_top_k(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const int64_t axis = axis_attribute(node, in[0].shape()), k = node.attributes.get_int(Attr::k);
  const bool largest = node.attributes.get_int(Attr::largest, 1) != 0;
  const int64_t inner = contiguous_strides(in[0].shape())[axis];
  for_each_line(in[0].shape(), axis, [&](const Line& line, int64_t n) {
    std::vector<int64_t> order(line.size);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      return largest ? above(in[0], line.at(p), line.at(q)) : above(in[0], line.at(q), line.at(p));
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = n / inner * k * inner + i * inner + n % inner;
      copy_element(in[0], line.at(order[i]), out[0], to);
      out[1].set_int(to, order[i]);
    }
  });
}

// dy goes back to where the values came from: element (outer, index, inner) of x, counted through.
void top_k_vjp(VjpContext& c) {
  const Shape from = c.build.shape(c.input(0)), shape = c.build.shape(c.output(0));
  if (c.output_gradient() == kNone || elements(shape) == 0) return;
  const int64_t axis = axis_attribute(c.node, from), inner = contiguous_strides(from)[axis];
  Shape lines = shape;
  lines[axis] = 1;
  HostTensor starts(DType::i64, lines);
  for_each_line(from, axis, [&](const Line& line, int64_t n) { starts.set_int(n, line.first); });
  ValueId places = c.output(1);
  if (inner != 1) places = c.build.add(OpKind::mul, {places, c.build.scalar(static_cast<double>(inner), DType::i64)});
  if (starts.count() != 1) places = c.build.add(OpKind::add, {places, c.build.constant(std::move(starts))});
  const ValueId flat = c.build.reshape(c.output_gradient(), {elements(shape)});
  const ValueId dx = c.build.add(OpKind::gather_grad, {flat, c.build.reshape(places, {elements(shape)})},
                                 {{Attr::axis, int64_t{0}}, {Attr::shape, Shape{elements(from)}}});
  c.set(0, c.build.reshape(dx, from));
}

int64_t top_k_workspace(const Graph& graph, const Node& node, int threads) {
  const Shape& shape = graph.values[node.inputs[0]].shape;
  return threads * top_k_thread_bytes(shape[axis_attribute(node, shape)]);
}

int64_t top_k_cuda(const Graph& graph, const Node& node) {
  const Shape& shape = graph.values[node.inputs[0]].shape;
  const int64_t size = shape[axis_attribute(node, shape)];
  return cuda_top_k_workspace(size == 0 ? 0 : elements(shape) / size, {size, node.attributes.get_int(Attr::k)});
}

double read_flops(const Graph& graph, const Node& node) { return static_cast<double>(elements(graph.values[node.inputs[0]].shape)); }

}  // namespace

OpDef cumsum_def() {
  OpDef def;
  def.infer = infer_cumsum;
  def.vjp = cumsum_vjp;
  def.evaluate = evaluate_cumsum;
  def.in_place = {{0, 0}};
  return def;
}

OpDef arg_max_def() {
  OpDef def;
  def.infer = infer_arg_max;
  def.vjp = zero_vjp;
  def.evaluate = evaluate_arg_max;
  def.flops = read_flops;
  return def;
}

OpDef top_k_def() {
  OpDef def;
  def.infer = infer_top_k;
  def.vjp = top_k_vjp;
  def.evaluate = evaluate_top_k;
  def.workspace = top_k_workspace;
  def.cuda_workspace = top_k_cuda;
  def.flops = read_flops;
  return def;
}

}  // namespace zeroplan
