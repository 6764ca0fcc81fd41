// batch_norm: x [N,C,…], gamma [C], beta [C] → y, mean [C], variance [C] (of the population), over all axes but the channels.
// batch_norm_grad: dy, x, gamma, mean, variance → dx, dgamma, dbeta.
#include <cmath>

#include "base/error.h"
#include "graph/ops/cuda_channel_chunks.h"
#include "graph/ops/definitions.h"
#include "graph/ops/norm_rules.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

const Value& check_operands(const Graph& graph, const Node& node, std::initializer_list<std::string_view> names, int per_channel,
                            int statistics) {
  const int count = static_cast<int>(names.size());
  expect_inputs(node, count, count);
  node.attributes.get_double(Attr::epsilon);
  const Value& x = floating_operand(graph, node, 0, names.begin()[0]);
  expect_rank(x, 2, kMaxRank, names.begin()[0]);
  if (zeroplan::elements(x.shape) == 0) throw Error("has no elements to take statistics of");
  for (int i = 1; i < count; ++i) {
    const Value& other = operand(graph, node, i, names.begin()[i]);
    expect_dtype(other, i < statistics ? x.dtype : wide_dtype(x.dtype), names.begin()[i]);
    expect_shape(other, i < per_channel ? x.shape : Shape{x.shape[1]}, names.begin()[i]);
  }
  return x;
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  const Value& x = check_operands(graph, node, {"x", "gamma", "beta"}, 1, 3);
  const Shape channels = {x.shape[1]};
  return {{x.dtype, x.shape}, {wide_dtype(x.dtype), channels}, {wide_dtype(x.dtype), channels}};
}

std::vector<OutputType> infer_grad(const Graph& graph, const Node& node) {
  const Value& dy = check_operands(graph, node, {"dy", "x", "gamma", "mean", "variance"}, 2, 3);
  const Shape channels = {dy.shape[1]};
  return {{dy.dtype, dy.shape}, {dy.dtype, channels}, {dy.dtype, channels}};
}

// fn(element) for each element of a channel.
template <typename Fn>
void for_channel(const Shape& shape, int64_t channel, const Fn& fn) {
  const int64_t plane = elements(shape) / (shape[0] * shape[1]);
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t i = 0; i < plane; ++i) fn((n * shape[1] + channel) * plane + i);
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor& x = in[0];
  const int64_t channels = x.shape()[1];
  const double count = static_cast<double>(x.count()) / static_cast<double>(channels);
  for (int64_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    for_channel(x.shape(), c, [&](int64_t i) { mean += x.get(i) / count; });
    for_channel(x.shape(), c, [&](int64_t i) { variance += (x.get(i) - mean) * (x.get(i) - mean) / count; });
    const double rstd = 1 / std::sqrt(variance + node.attributes.get_double(Attr::epsilon));
    for_channel(x.shape(), c, [&](int64_t i) { out[0].set(i, (x.get(i) - mean) * rstd * in[1].get(c) + in[2].get(c)); });
    out[1].set(c, mean);
    out[2].set(c, variance);
  }
}

// A number per channel [C], as it is broadcast to x's shape.
ValueId per_channel(VjpContext& c, ValueId value, const Shape& x) {
  Shape shape(x.size() - 1, 1);
  shape[0] = x[1];
  return c.build.reshape(value, shape);
}

// What reaches x through the statistics: a share of the mean's gradient, and of the variance's by 2·(x - mean).
ValueId statistics_gradient(VjpContext& c) {
  const DType dtype = c.build.dtype(c.output(1));
  const Shape shape = c.build.shape(c.input(0));
  const double count = static_cast<double>(elements(shape)) / static_cast<double>(shape[1]);
  const auto share = [&](int output, double factor) {
    const ValueId scale = c.build.scalar(factor / count, dtype);
    return per_channel(c, c.build.add(OpKind::mul, {c.output_gradient(output), scale}), shape);
  };
  ValueId sum = kNone;
  if (c.output_gradient(2) != kNone) {
    const ValueId centred = c.build.add(OpKind::sub, {c.build.cast(c.input(0), dtype), per_channel(c, c.output(1), shape)});
    sum = c.build.add(OpKind::mul, {centred, share(2, 2)});
  }
  if (c.output_gradient(1) != kNone)
    sum =
        sum == kNone ? c.build.add(OpKind::broadcast, {share(1, 1)}, {{Attr::shape, shape}}) : c.build.add(OpKind::add, {sum, share(1, 1)});
  return sum == kNone ? kNone : c.build.cast(sum, c.build.dtype(c.input(0)));
}

void vjp(VjpContext& c) {
  const ValueId statistics = c.needs(0) ? statistics_gradient(c) : kNone;
  if (c.output_gradient() == kNone) return c.set(0, statistics);
  const std::vector<ValueId> gradients =
      c.build.add_multi(OpKind::batch_norm_grad, {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)},
                        {{Attr::epsilon, c.node.attributes.get_double(Attr::epsilon)}});
  for (int i = 0; i < 3; ++i) c.set(i, gradients[i]);
  if (statistics != kNone) c.set(0, c.build.add(OpKind::add, {gradients[0], statistics}));
}

// With x̂ = (x - mean)·rstd: dx = gamma·rstd·(dy - mean(dy) - x̂·mean(dy·x̂)).
void evaluate_grad(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &dy = in[0], &x = in[1];
  const int64_t channels = x.shape()[1];
  const double count = static_cast<double>(x.count()) / static_cast<double>(channels);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = in[3].get(c), rstd = 1 / std::sqrt(in[4].get(c) + node.attributes.get_double(Attr::epsilon));
    double sum = 0, dot = 0;
    for_channel(x.shape(), c, [&](int64_t i) {
      sum += dy.get(i);
      dot += dy.get(i) * (x.get(i) - mean) * rstd;
    });
    for_channel(x.shape(), c, [&](int64_t i) {
      out[0].set(i, in[2].get(c) * rstd * (dy.get(i) - sum / count - (x.get(i) - mean) * rstd * dot / count));
    });
    out[1].set(c, dot);
    out[2].set(c, sum);
  }
}

int64_t cuda_workspace(const Graph& graph, const Node& node) {
  const Shape& x = graph.value(node.inputs[0]).shape;
  return cuda_batch_norm_workspace(x[0], x[1], elements(x) / (x[0] * x[1]));
}

}  // namespace

OpDef batch_norm_def() {
  OpDef def = norm_def(norm_flops<8>);
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.cuda_workspace = cuda_workspace;
  return def;
}

OpDef batch_norm_grad_def() {
  OpDef def = norm_def(norm_flops<8>);
  def.infer = infer_grad;
  def.evaluate = evaluate_grad;
  def.cuda_workspace = cuda_workspace;
  return def;
}

}  // namespace zeroplan
