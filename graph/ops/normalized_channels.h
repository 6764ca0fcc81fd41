#pragma once
// Batch normalization by known statistics, as nodes of a Builder or a FoldingBuilder.
#include "graph/ops/builder.h"

namespace zeroplan {

struct ChannelNorm {  // [C] each
  ValueId mean = kNone, variance = kNone, gamma = kNone, beta = kNone;
};

// A factor or term per channel [C], as it is broadcast to [N, C, …] of this rank.
template <typename Build>
ValueId spread_channels(Build& build, ValueId x, size_t rank) {
  Shape shape(rank, 1);
  shape[1] = elements(build.shape(x));
  return build.reshape(x, shape);
}

// (x - mean) · gamma / sqrt(variance + epsilon) + beta for x [N, C, …].
template <typename Build>
ValueId normalized_channels(Build& build, ValueId x, const ChannelNorm& norm, double epsilon) {
  const size_t rank = build.shape(x).size();
  const ValueId centred = build.add(OpKind::sub, {x, spread_channels(build, norm.mean, rank)});
  const ValueId safe = build.add(OpKind::add, {norm.variance, build.scalar(epsilon, build.dtype(norm.variance))});
  const ValueId factor = build.add(OpKind::mul, {norm.gamma, build.add(OpKind::reciprocal, {build.add(OpKind::sqrt, {safe})})});
  const ValueId scaled = build.add(OpKind::mul, {centred, spread_channels(build, factor, rank)});
  return build.add(OpKind::add, {scaled, spread_channels(build, norm.beta, rank)});
}

}  // namespace zeroplan
