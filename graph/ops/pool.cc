// max_pool: x [N,C,…] → y, indices (i64, into x as one flat list; the first of equal maxima; a nan wins). average_pool: x → y, the mean of
// a window: over all its places (count_include_pad 1) or over those inside x (0). average_pool_grad: dy → dx of `shape`.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/conv_shape.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/window_rules.h"
#include "graph/ops/workspace.h"

namespace zeroplan {
namespace {

Shape pooled(const Node& node, const Shape& x) {
  if (x.size() < 3 || x.size() > 5) throw Error(fmt::format("an input of shape {} has no 1 to 3 spatial axes", to_string(x)));
  return window_result(node.attributes, x, x[1], node.attributes.get_ints(Attr::kernel_shape));
}

Windows windows_of(const Node& node, const Shape& x) {
  return make_windows(x.data(), static_cast<int>(x.size()), node.attributes.get_ints(Attr::kernel_shape).data(), node.attributes);
}

// The first window without an element of x, -1: there is none.
int64_t empty_window(const WindowAxis& a) {
  constexpr int64_t kMostChecked = int64_t{1} << 20;
  if (a.in == 0) return 0;
  // Windows that start in front of x may jump over it; of the others, those that start behind it have none.
  const int64_t in_front = std::min(a.out, a.before <= 0 ? 0 : (a.before - 1) / a.stride + 1);
  if (in_front > kMostChecked && a.dilation > a.in)
    throw Error(fmt::format("a padding of {} for windows of dilation {} is not supported", a.before, a.dilation));
  for (int64_t o = 0; o < in_front; ++o) {
    const int64_t missing = a.before - o * a.stride, taps = (missing - 1) / a.dilation + 1;  // that lie in front of x
    if (taps >= a.kernel || taps * a.dilation - missing >= a.in) return o;
    if (a.dilation <= a.in) break;  // the others start nearer
  }
  const int64_t behind = a.in + a.before <= 0 ? 0 : (a.in + a.before - 1) / a.stride + 1;
  return behind < a.out ? behind : -1;
}

// Every window must have an element of x.
void check_windows(const Node& node, const Shape& x) {
  for (const WindowAxis& a : windows_of(node, x).axis)
    if (const int64_t o = empty_window(a); o >= 0)
      throw Error(fmt::format("window {} lies in the padding alone of an input of shape {}", o, to_string(x)));
}

std::vector<OutputType> infer_max(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = floating_operand(graph, node, 0, "x");
  const Shape y = pooled(node, x.shape);
  check_windows(node, x.shape);
  return {{x.dtype, y}, {DType::i64, y}};
}

std::vector<OutputType> infer_average(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& x = floating_operand(graph, node, 0, "x");
  const Shape y = pooled(node, x.shape);
  if (node.attributes.get_int(Attr::count_include_pad) == 0) check_windows(node, x.shape);
  return {{x.dtype, y}};
}

std::vector<OutputType> infer_average_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1, 1);
  const Value& dy = floating_operand(graph, node, 0, "dy");
  const Shape& x = node.attributes.get_ints(Attr::shape);
  expect_shape(dy, pooled(node, x), "dy");
  if (node.attributes.get_int(Attr::count_include_pad) == 0) check_windows(node, x);
  return {{dy.dtype, x}};
}

// fn(result element, input element) for every place of a window inside x, in order.
template <typename Fn>
void for_each_place(const Node& node, const Shape& x, const Fn& fn) {
  const Windows w = windows_of(node, x);
  const WindowAxis* a = w.axis;
  for_each_index({x[0] * x[1], a[0].out, a[1].out, a[2].out}, [&](const Index& o, int64_t y) {
    for_each_index({a[0].kernel, a[1].kernel, a[2].kernel}, [&](const Index& k, int64_t) {
      int64_t from = o[0];
      for (int i = 0; i < 3; ++i) {
        const int64_t at = o[1 + i] * a[i].stride - a[i].before + k[i] * a[i].dilation;
        if (at < 0 || at >= a[i].in) return;
        from = from * a[i].in + at;
      }
      fn(y, from);
    });
  });
}

void evaluate_max(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  std::vector<int64_t> best(out[0].count(), -1);
  for_each_place(node, in[0].shape(), [&](int64_t y, int64_t x) {
    const double value = in[0].get(x);
    if (best[y] < 0 || value > in[0].get(best[y]) || std::isnan(value)) best[y] = x;
  });
  for (int64_t i = 0; i < out[0].count(); ++i) {
    out[0].set(i, in[0].get(best[i]));
    out[1].set_int(i, best[i]);
  }
}

std::vector<double> divisors(const Node& node, const Shape& x, int64_t count) {
  if (node.attributes.get_int(Attr::count_include_pad) != 0)
    return std::vector<double>(count, static_cast<double>(windows_of(node, x).taps()));
  std::vector<double> inside(count, 0);
  for_each_place(node, x, [&](int64_t y, int64_t) { ++inside[y]; });
  return inside;
}

void evaluate_average(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  std::vector<double> sums(out[0].count(), 0);
  for_each_place(node, in[0].shape(), [&](int64_t y, int64_t x) { sums[y] += in[0].get(x); });
  const std::vector<double> divisor = divisors(node, in[0].shape(), out[0].count());
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, sums[i] / divisor[i]);
}

void evaluate_average_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  std::vector<double> sums(out[0].count(), 0);
  const std::vector<double> divisor = divisors(node, out[0].shape(), in[0].count());
  for_each_place(node, out[0].shape(), [&](int64_t y, int64_t x) { sums[x] += in[0].get(y) / divisor[y]; });
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, sums[i]);
}

void max_vjp(VjpContext& c) {
  const Shape shape = c.build.shape(c.input(0));
  const int64_t count = elements(c.build.shape(c.output(0)));
  const ValueId dy = c.build.reshape(c.output_gradient(), {count}), indices = c.build.reshape(c.output(1), {count});
  const ValueId flat = c.build.add(OpKind::gather_grad, {dy, indices}, {{Attr::axis, int64_t{0}}, {Attr::shape, Shape{elements(shape)}}});
  c.set(0, c.build.reshape(flat, shape));
}

Attributes window_attributes(const Node& node) {
  Attributes attributes;
  for (const Attr key : {Attr::kernel_shape, Attr::strides, Attr::pads, Attr::dilations})
    attributes.set(key, node.attributes.get_ints(key));
  attributes.set(Attr::count_include_pad, node.attributes.get_int(Attr::count_include_pad));
  return attributes;
}

void average_vjp(VjpContext& c) {
  Attributes attributes = window_attributes(c.node);
  attributes.set(Attr::shape, c.build.shape(c.input(0)));
  c.set(0, c.build.add(OpKind::average_pool_grad, {c.output_gradient()}, attributes));
}

void average_grad_vjp(VjpContext& c) { c.set(0, c.build.add(OpKind::average_pool, {c.output_gradient()}, window_attributes(c.node))); }

// The gradient scaled by the size of its window.
int64_t grad_workspace(const Graph& graph, const Node& node, int) {
  const Value& dy = graph.value(node.inputs[0]);
  return workspace_round(elements(dy.shape) * dtype_bytes(wide_dtype(dy.dtype)));
}

double flops(const Graph& graph, const Node& node) {
  const Shape& operand = graph.value(node.inputs[0]).shape;
  const Shape result = node.op == OpKind::average_pool_grad ? operand : pooled(node, operand);
  return static_cast<double>(elements(result)) * static_cast<double>(elements(node.attributes.get_ints(Attr::kernel_shape)));
}

}  // namespace

OpDef max_pool_def() {
  OpDef def;
  def.infer = infer_max;
  def.vjp = max_vjp;
  def.evaluate = evaluate_max;
  def.flops = flops;
  return def;
}

OpDef average_pool_def() {
  OpDef def;
  def.infer = infer_average;
  def.vjp = average_vjp;
  def.evaluate = evaluate_average;
  def.flops = flops;
  return def;
}

OpDef average_pool_grad_def() {
  OpDef def;
  def.infer = infer_average_grad;
  def.vjp = average_grad_vjp;
  def.evaluate = evaluate_average_grad;
  def.workspace = grad_workspace;
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
