// conv: x [N,C,…], w [M,C/groups,k…] → y [N,M,…], 1 to 3 spatial axes. conv_grad_input: dy, w → dx of `shape`; conv_grad_weight: x, dy → dw
// of `shape`. The map is linear in x and in w, so the three are each other's gradients.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/cuda_conv_columns.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"
#include "graph/ops/window_rules.h"

namespace zeroplan {
namespace {

struct ConvTypes {
  Shape x, w, y;
};

Shape result_shape(const Node& node, const Shape& x, const Shape& w) {
  const int64_t groups = node.attributes.get_int(Attr::groups);
  if (w.size() != x.size() || groups < 1 || w[0] % groups != 0 || x[1] % groups != 0 || x[1] / groups != w[1])
    throw Error(fmt::format("a weight of shape {} with {} groups does not fit an input of shape {}", to_string(w), groups, to_string(x)));
  return window_result(node.attributes, x, w[0], Shape(w.begin() + 2, w.end()));
}

// Shapes of the three tensors, of which conv_grad_input and conv_grad_weight have one as attribute.
ConvTypes types_of(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 2);
  const Value &a = floating_operand(graph, node, 0, "the first operand"), &b = floating_operand(graph, node, 1, "the second operand");
  expect_dtype(b, a.dtype, "the second operand");
  ConvTypes t;
  if (node.op == OpKind::conv) {
    t.x = a.shape;
    t.w = b.shape;
  } else if (node.op == OpKind::conv_grad_input) {
    t.x = node.attributes.get_ints(Attr::shape);
    t.w = b.shape;
    t.y = a.shape;
  } else {
    t.x = a.shape;
    t.w = node.attributes.get_ints(Attr::shape);
    t.y = b.shape;
  }
  if (t.x.size() < 3 || t.x.size() > 5) throw Error(fmt::format("an input of shape {} has no 1 to 3 spatial axes", to_string(t.x)));
  const Shape y = result_shape(node, t.x, t.w);
  if (node.op != OpKind::conv && y != t.y)
    throw Error(fmt::format("a result of shape {} does not belong to an input {} and a weight {}, which give {}", to_string(t.y),
                            to_string(t.x), to_string(t.w), to_string(y)));
  t.y = y;
  return t;
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  const ConvTypes t = types_of(graph, node);
  const DType dtype = graph.value(node.inputs[0]).dtype;
  if (node.op == OpKind::conv_grad_weight) return {{sum_dtype(node, dtype), t.w}};
  return {{dtype, node.op == OpKind::conv ? t.y : t.x}};
}

ConvShape shape_of(const Node& node, const Shape& x, const Shape& w) {
  return conv_shape(x.data(), w.data(), static_cast<int>(x.size()), node.attributes);
}

ConvShape shape_of(const Graph& graph, const Node& node) {
  const ConvTypes t = types_of(graph, node);
  return shape_of(node, t.x, t.w);
}

// fn(x element, w element, y element) for every product.
template <typename Fn>
void for_each_product(const ConvShape& s, const Fn& fn) {
  const WindowAxis* a = s.windows.axis;
  const int64_t channels = s.groups * s.out_channels;
  for_each_index({s.batch, channels, a[0].out, a[1].out, a[2].out}, [&](const Index& o, int64_t y) {
    const int64_t group = o[1] / s.out_channels;
    for_each_index({s.in_channels, a[0].kernel, a[1].kernel, a[2].kernel}, [&](const Index& k, int64_t inside) {
      int64_t x = (o[0] * s.groups + group) * s.in_channels + k[0];
      for (int i = 0; i < 3; ++i) {
        const int64_t at = o[2 + i] * a[i].stride - a[i].before + k[1 + i] * a[i].dilation;
        if (at < 0 || at >= a[i].in) return;
        x = x * a[i].in + at;
      }
      fn(x, o[1] * s.in_channels * s.windows.taps() + inside, y);
    });
  });
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  std::vector<double> sums(out[0].count(), 0);
  if (node.op == OpKind::conv)
    for_each_product(shape_of(node, in[0].shape(), in[1].shape()),
                     [&](int64_t x, int64_t w, int64_t y) { sums[y] += in[0].get(x) * in[1].get(w); });
  else if (node.op == OpKind::conv_grad_input)
    for_each_product(shape_of(node, out[0].shape(), in[1].shape()),
                     [&](int64_t x, int64_t w, int64_t y) { sums[x] += in[0].get(y) * in[1].get(w); });
  else
    for_each_product(shape_of(node, in[0].shape(), out[0].shape()),
                     [&](int64_t x, int64_t w, int64_t y) { sums[w] += in[0].get(x) * in[1].get(y); });
  for (int64_t i = 0; i < out[0].count(); ++i) out[0].set(i, sums[i]);
}

// The node's windows with `shape` as the shape of the result, or without.
ValueId related(VjpContext& c, OpKind op, ValueId a, ValueId b, ValueId like) {
  Attributes attributes;
  for (const Attr key : {Attr::strides, Attr::pads, Attr::dilations}) attributes.set(key, c.node.attributes.get_ints(key));
  attributes.set(Attr::groups, c.node.attributes.get_int(Attr::groups));
  if (op != OpKind::conv) attributes.set(Attr::shape, c.build.shape(like));
  return c.build.add(op, {a, b}, attributes);
}

void conv_vjp(VjpContext& c) {
  const ValueId x = c.input(0), w = c.input(1), dy = c.output_gradient();
  if (c.needs(0)) c.set(0, related(c, OpKind::conv_grad_input, dy, w, x));
  if (c.needs(1)) c.set(1, related(c, OpKind::conv_grad_weight, x, dy, w));
}

void grad_input_vjp(VjpContext& c) {
  const ValueId y = c.input(0), w = c.input(1), gradient = c.output_gradient();
  if (c.needs(0)) c.set(0, related(c, OpKind::conv, gradient, w, y));
  if (c.needs(1)) c.set(1, related(c, OpKind::conv_grad_weight, gradient, y, w));
}

void grad_weight_vjp(VjpContext& c) {
  const ValueId x = c.input(0), y = c.input(1), gradient = c.output_gradient();
  if (c.needs(0)) c.set(0, related(c, OpKind::conv_grad_input, y, gradient, x));
  if (c.needs(1)) c.set(1, related(c, OpKind::conv, x, gradient, y));
}

int64_t workspace(const Graph& graph, const Node& node, int threads) {
  return conv_workspace_bytes(shape_of(graph, node), node.op, threads, dtype_bytes(wide_dtype(graph.value(node.inputs[0]).dtype)));
}

int64_t cuda_workspace(const Graph& graph, const Node& node) {
  const DType dtype = graph.value(node.inputs[0]).dtype;
  return cuda_conv_workspace(shape_of(graph, node), node.op, dtype_bytes(dtype), dtype_bytes(wide_dtype(dtype)));
}

double flops(const Graph& graph, const Node& node) {
  const ConvShape s = shape_of(graph, node);
  return 2.0 * static_cast<double>(s.batch * s.groups * s.out_channels * s.windows.out_points()) *
         static_cast<double>(s.in_channels * s.windows.taps());
}

OpDef conv_family(void (*vjp)(VjpContext&)) {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.workspace = workspace;
  def.cuda_workspace = cuda_workspace;
  def.flops = flops;
  return def;
}

}  // namespace

OpDef conv_def() { return conv_family(conv_vjp); }
OpDef conv_grad_input_def() { return conv_family(grad_input_vjp); }
OpDef conv_grad_weight_def() { return conv_family(grad_weight_vjp); }

}  // namespace zeroplan
