// BatchNormalization, with the statistics of its batch or with the running ones.
#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

Shape along_channels(const Shape& x) {
  Shape shape(x.size(), 1);
  shape[1] = x[1];
  return shape;
}

void check_channels(const DecodeContext& c) {
  if (c.rank(0) < 2) throw Error("its input needs a batch and a channel axis");
  for (int i = 1; i < 5; ++i)
    if (c.shape(i) != Shape{c.shape(0)[1]}) throw Error("scale, bias, mean and variance need one element per channel");
}

// y = x · factor + (bias - mean · factor), factor = scale / sqrt(variance + epsilon)
void evaluated(DecodeContext& c, double epsilon) {
  const ValueId x = c.in(0), mean = c.in(3), variance = c.in(4);
  const Shape channels = along_channels(c.shape(0));
  const ValueId shifted = c.build.add(OpKind::add, {variance, c.build.scalar(epsilon, c.build.dtype(variance))});
  const ValueId rstd = c.build.add(OpKind::reciprocal, {c.build.add(OpKind::sqrt, {shifted})});
  const ValueId factor = c.build.add(OpKind::mul, {c.in(1), rstd});
  const ValueId offset = c.build.add(OpKind::sub, {c.in(2), c.build.add(OpKind::mul, {mean, factor})});
  const ValueId scaled = c.build.add(OpKind::mul, {x, c.build.reshape(factor, channels)});
  c.out(0, c.build.add(OpKind::add, {scaled, c.build.reshape(offset, channels)}));
}

bool holds_statistics(const DecodeContext& c, int input) {
  const Value& value = c.build.graph().values[c.in(input)];
  return value.kind == ValueKind::parameter && c.build.graph().parameters[value.parameter].statistics;
}

// running · momentum + batch · (1 - momentum)
ValueId folded(DecodeContext& c, ValueId running, ValueId batch, double momentum) {
  const DType dtype = c.build.dtype(running);
  const ValueId kept = c.build.add(OpKind::mul, {running, c.build.scalar(momentum, dtype)});
  return c.build.add(OpKind::add, {kept, c.build.add(OpKind::mul, {batch, c.build.scalar(1 - momentum, dtype)})});
}

void trained(DecodeContext& c, double epsilon) {
  const double momentum = c.attr_float("momentum", 0.9);
  const std::vector<ValueId> y = c.build.add_multi(OpKind::batch_norm, {c.in(0), c.in(1), c.in(2)}, {{Attr::epsilon, epsilon}});
  c.out(0, y[0]);
  if (c.wants(1)) c.out(1, folded(c, c.in(3), y[1], momentum));
  if (c.wants(2)) c.out(2, folded(c, c.in(4), y[2], momentum));
  if (holds_statistics(c, 3) && holds_statistics(c, 4)) c.build.graph().statistics.push_back({y[1], y[2], c.in(3), c.in(4), momentum});
}

void batch_normalization(DecodeContext& c) {
  check_channels(c);
  const double epsilon = c.attr_float("epsilon", 1e-5);
  if (c.attr_int("training_mode", 0) != 0)
    trained(c, epsilon);
  else
    evaluated(c, epsilon);
}

}  // namespace

void add_batch_norm_decoders(DecoderTable& t) { t["BatchNormalization"] = batch_normalization; }

}  // namespace zeroplan
