// Normalisation by statistics of a batch, of samples, of groups of channels, and by norms.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode_powers.h"
#include "graph/onnx/decode_windows.h"
#include "graph/ops/normalized_channels.h"

namespace zeroplan {

namespace {

// x · scale + shift with both [C].
Term scaled_channels(Term x, Term scale, Term shift) { return x * per_channel(scale, x.rank()) + per_channel(shift, x.rank()); }

void expect_channels(const DecodeContext& c, int input, int64_t channels) {
  if (elements(c.shape(input)) != channels)
    throw Error(fmt::format("its input {} of shape {} does not fit {} channels", input, to_string(c.shape(input)), channels));
}

// With the statistics that the model stores.
Term normalized_by_statistics(DecodeContext& c) {
  const Term x = term(c, 0), mean = term(c, 3).cast(x.dtype()), variance = term(c, 4).cast(x.dtype());
  return {c.build, normalized_channels(c.build, x.id(), {mean.id(), variance.id(), c.in(1), c.in(2)}, c.attr_float("epsilon", 1e-5))};
}

// running · momentum + current · (1 - momentum)
Term moved(DecodeContext& c, Term running, Term current) {
  const double momentum = c.attr_float("momentum", 0.9);
  return running * momentum + current * (1 - momentum);
}

bool holds_statistics(const DecodeContext& c, int input) {
  const Value& value = c.build.graph().values[c.in(input)];
  return value.kind == ValueKind::parameter && c.build.graph().parameters[value.parameter].statistics;
}

void batch_norm(DecodeContext& c) {
  if (c.rank(0) < 2) throw Error(fmt::format("its input {} has no channels", to_string(c.shape(0))));
  for (int i = 1; i < 5; ++i) expect_channels(c, i, c.shape(0)[1]);
  if (c.attr_int("training_mode", 0) == 0) {
    result(c, normalized_by_statistics(c));
    c.out(1, c.in(3));  // of a node that trains in the file
    c.out(2, c.in(4));
    return;
  }
  for (int i = 3; i < 5; ++i)
    if (c.rank(i) != 1) throw Error(fmt::format("its running statistics of shape {} need one axis, of channels", to_string(c.shape(i))));
  const std::vector<ValueId> y =
      c.build.add_multi(OpKind::batch_norm, {c.in(0), c.in(1), c.in(2)}, {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}});
  c.out(0, y[0]);
  for (int i = 1; i < 3; ++i)
    if (c.wants(i)) result(c, moved(c, term(c, 2 + i), {c.build, y[i]}), i);
  if (holds_statistics(c, 3) && holds_statistics(c, 4))
    c.build.graph().statistics.push_back({y[1], y[2], c.in(3), c.in(4), c.attr_float("momentum", 0.9)});
}

// Each of `rows` stretches of x to mean 0 and variance 1.
Term normalized_rows(DecodeContext& c, int64_t rows) {
  const Term x = term(c, 0);
  const Shape shape = x.shape();
  const int64_t columns = elements(shape) / std::max<int64_t>(rows, 1);
  const ValueId ones = c.build.filled(1, {columns}, x.dtype());
  const Attributes attributes = {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}};
  return Term(c.build, c.build.add(OpKind::layer_norm, {x.reshape({rows, columns}).id(), ones}, attributes)).reshape(shape);
}

void instance_norm(DecodeContext& c) {
  if (c.rank(0) < 3) throw Error(fmt::format("its input {} has no spatial axes", to_string(c.shape(0))));
  for (int i = 1; i < 3; ++i) expect_channels(c, i, c.shape(0)[1]);
  result(c, scaled_channels(normalized_rows(c, c.shape(0)[0] * c.shape(0)[1]), term(c, 1), term(c, 2)));
}

void group_norm(DecodeContext& c) {
  const int64_t groups = c.attr_int("num_groups", 0), rank = c.rank(0);
  if (rank < 2 || groups < 1 || groups > c.shape(0)[1] || c.shape(0)[1] % groups != 0)
    throw Error(fmt::format("{} groups do not fit its input {}", groups, to_string(c.shape(0))));
  for (int i = 1; i < 3; ++i) expect_channels(c, i, c.shape(0)[1]);
  result(c, scaled_channels(normalized_rows(c, c.shape(0)[0] * groups), term(c, 1), term(c, 2)));
}

// (x - mean) / (standard deviation + 1e-9)
void mean_variance_norm(DecodeContext& c) {
  std::vector<int64_t> axes = c.attr_ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  for (int64_t& axis : axes) axis = normalize_axis(axis, c.rank(0));
  std::sort(axes.begin(), axes.end());
  const Term x = term(c, 0), centred = x - reduce(OpKind::reduce_mean, x, axes, true);
  result(c, centred / (power_root(reduce(OpKind::reduce_mean, centred * centred, axes, true), 2) + 1e-9));
}

// x over its p-norm along an axis; 0 where the norm is 0.
void lp_norm(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0)), p = c.attr_int("p", 2);
  if (p != 1 && p != 2) throw Error(fmt::format("p {} is neither 1 nor 2", p));
  const Term x = term(c, 0), powers = absolute_power(x, static_cast<double>(p));
  const Term norm = power_root(reduce(OpKind::reduce_sum, powers, {axis}, true), static_cast<double>(p));
  result(c, x / where(norm == 0, 1, norm));
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
