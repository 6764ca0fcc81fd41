// Normalisation by statistics of a batch, of samples, of groups of channels, and by norms.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode_powers.h"
#include "graph/onnx/decode_windows.h"

namespace zeroplan {

ValueId filled(DecodeContext& c, int64_t count, double value, DType dtype) {
  return c.build.add(OpKind::fill, {}, {{Attr::value, value}, {Attr::shape, Shape{count}}, {Attr::dtype, std::string(dtype_name(dtype))}});
}

ValueId absolute_power(DecodeContext& c, ValueId x, double p) {
  if (p == 2) return c.build.add(OpKind::mul, {x, x});
  const ValueId size = c.build.add(OpKind::abs, {x});
  return p == 1 ? size : c.build.add(OpKind::pow, {size, c.build.scalar(p, c.build.dtype(x))});
}

ValueId power_root(DecodeContext& c, ValueId sum, double p) {
  if (p == 1) return sum;
  const DType dtype = c.build.dtype(sum);
  const ValueId zero = c.build.scalar(0, dtype), positive = c.build.add(OpKind::greater, {sum, zero});
  const ValueId safe = c.build.add(OpKind::where, {positive, sum, c.build.scalar(1, dtype)});
  const ValueId root = p == 2 ? c.build.add(OpKind::sqrt, {safe}) : c.build.add(OpKind::pow, {safe, c.build.scalar(1 / p, dtype)});
  return c.build.add(OpKind::where, {positive, root, zero});
}

namespace {

ValueId combine(DecodeContext& c, OpKind op, ValueId a, ValueId b) { return c.build.add(op, {a, b}); }
ValueId number(DecodeContext& c, double value, ValueId like) { return c.build.scalar(value, c.build.dtype(like)); }

// x · scale + shift with both [C].
ValueId scaled_channels(DecodeContext& c, ValueId x, ValueId scale, ValueId shift, int64_t rank) {
  const ValueId product = combine(c, OpKind::mul, x, per_channel(c, scale, rank));
  return combine(c, OpKind::add, product, per_channel(c, shift, rank));
}

void expect_channels(const DecodeContext& c, int input, int64_t channels) {
  if (elements(c.shape(input)) != channels)
    throw Error(fmt::format("its input {} of shape {} does not fit {} channels", input, to_string(c.shape(input)), channels));
}

// With the statistics that the model stores.
ValueId normalized_by_statistics(DecodeContext& c) {
  const int64_t rank = c.rank(0);
  const DType dtype = c.build.dtype(c.in(0));
  const ValueId variance = combine(c, OpKind::add, c.build.cast(c.in(4), dtype), number(c, c.attr_float("epsilon", 1e-5), c.in(0)));
  const ValueId rstd = c.build.add(OpKind::reciprocal, {c.build.add(OpKind::sqrt, {variance})});
  const ValueId centred = combine(c, OpKind::sub, c.in(0), per_channel(c, c.build.cast(c.in(3), dtype), rank));
  return scaled_channels(c, centred, combine(c, OpKind::mul, c.in(1), rstd), c.in(2), rank);
}

// running · momentum + current · (1 - momentum)
ValueId moved(DecodeContext& c, ValueId running, ValueId current) {
  const double momentum = c.attr_float("momentum", 0.9);
  const ValueId kept = combine(c, OpKind::mul, running, number(c, momentum, running));
  return combine(c, OpKind::add, kept, combine(c, OpKind::mul, current, number(c, 1 - momentum, current)));
}

bool holds_statistics(const DecodeContext& c, int input) {
  const Value& value = c.build.graph().values[c.in(input)];
  return value.kind == ValueKind::parameter && c.build.graph().parameters[value.parameter].statistics;
}

void batch_norm(DecodeContext& c) {
  if (c.rank(0) < 2) throw Error(fmt::format("its input {} has no channels", to_string(c.shape(0))));
  for (int i = 1; i < 5; ++i) expect_channels(c, i, c.shape(0)[1]);
  if (c.attr_int("training_mode", 0) == 0) {
    c.out(0, normalized_by_statistics(c));
    c.out(1, c.in(3));  // of a node that trains in the file
    c.out(2, c.in(4));
    return;
  }
  for (int i = 3; i < 5; ++i)
    if (c.rank(i) != 1) throw Error(fmt::format("its running statistics of shape {} need one axis, of channels", to_string(c.shape(i))));
  const std::vector<ValueId> y =
      c.build.add_multi(OpKind::batch_norm, {c.in(0), c.in(1), c.in(2)}, {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}});
  c.out(0, y[0]);
  if (c.wants(1)) c.out(1, moved(c, c.in(3), y[1]));
  if (c.wants(2)) c.out(2, moved(c, c.in(4), y[2]));
  if (holds_statistics(c, 3) && holds_statistics(c, 4))
    c.build.graph().statistics.push_back({y[1], y[2], c.in(3), c.in(4), c.attr_float("momentum", 0.9)});
}

// Each of `rows` stretches of x to mean 0 and variance 1.
ValueId normalized_rows(DecodeContext& c, int64_t rows) {
  const ValueId x = c.in(0);
  const Shape shape = c.shape(0);
  const int64_t columns = elements(shape) / std::max<int64_t>(rows, 1);
  const ValueId ones = filled(c, columns, 1, c.build.dtype(x));
  const std::vector<ValueId> y =
      c.build.add_multi(OpKind::layer_norm, {c.build.reshape(x, {rows, columns}), ones}, {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}});
  return c.build.reshape(y[0], shape);
}

void instance_norm(DecodeContext& c) {
  const int64_t rank = c.rank(0);
  if (rank < 3) throw Error(fmt::format("its input {} has no spatial axes", to_string(c.shape(0))));
  for (int i = 1; i < 3; ++i) expect_channels(c, i, c.shape(0)[1]);
  c.out(0, scaled_channels(c, normalized_rows(c, c.shape(0)[0] * c.shape(0)[1]), c.in(1), c.in(2), rank));
}

// Scale and bias are one per channel; before opset 21 they were one per group.
ValueId spread_over_groups(DecodeContext& c, int input, int64_t groups, int64_t channels) {
  if (elements(c.shape(input)) != groups || groups == channels) {
    expect_channels(c, input, channels);
    return c.in(input);
  }
  return c.build.reshape(c.build.broadcast(c.build.reshape(c.in(input), {groups, 1}), {groups, channels / groups}), {channels});
}

void group_norm(DecodeContext& c) {
  const int64_t groups = c.attr_int("num_groups", 0), rank = c.rank(0);
  if (rank < 2 || groups < 1 || groups > c.shape(0)[1] || c.shape(0)[1] % groups != 0)
    throw Error(fmt::format("{} groups do not fit its input {}", groups, to_string(c.shape(0))));
  const int64_t channels = c.shape(0)[1];
  const ValueId scale = spread_over_groups(c, 1, groups, channels), shift = spread_over_groups(c, 2, groups, channels);
  c.out(0, scaled_channels(c, normalized_rows(c, c.shape(0)[0] * groups), scale, shift, rank));
}

// (x - mean) / (standard deviation + 1e-9)
void mean_variance_norm(DecodeContext& c) {
  std::vector<int64_t> axes = c.attr_ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  for (int64_t& axis : axes) axis = normalize_axis(axis, c.rank(0));
  std::sort(axes.begin(), axes.end());
  const Attributes over = {{Attr::axes, axes}, {Attr::keepdims, int64_t{1}}};
  const ValueId centred = combine(c, OpKind::sub, c.in(0), c.build.add(OpKind::reduce_mean, {c.in(0)}, over));
  const ValueId variance = c.build.add(OpKind::reduce_mean, {combine(c, OpKind::mul, centred, centred)}, over);
  const ValueId deviation = combine(c, OpKind::add, power_root(c, variance, 2), number(c, 1e-9, variance));
  c.out(0, combine(c, OpKind::div, centred, deviation));
}

// x over its p-norm along an axis; 0 where the norm is 0.
void lp_norm(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0)), p = c.attr_int("p", 2);
  if (p != 1 && p != 2) throw Error(fmt::format("p {} is neither 1 nor 2", p));
  const ValueId powers = absolute_power(c, c.in(0), static_cast<double>(p));
  const ValueId sum = c.build.add(OpKind::reduce_sum, {powers}, {{Attr::axes, std::vector<int64_t>{axis}}, {Attr::keepdims, int64_t{1}}});
  const ValueId norm = power_root(c, sum, static_cast<double>(p)), zero = number(c, 0, sum);
  const ValueId safe = c.build.add(OpKind::where, {c.build.add(OpKind::equal, {norm, zero}), number(c, 1, sum), norm});
  c.out(0, combine(c, OpKind::div, c.in(0), safe));
}

}  // namespace

void add_normalize_decoders(DecoderTable& t) {
  t["BatchNormalization"] = {batch_norm, gradient_to({0, 1, 2})};
  t["InstanceNormalization"] = instance_norm;
  t["GroupNormalization"] = group_norm;
  t["MeanVarianceNormalization"] = mean_variance_norm;
  t["LpNormalization"] = lp_norm;
}

}  // namespace zeroplan
