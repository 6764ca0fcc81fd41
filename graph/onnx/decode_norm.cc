// LayerNormalization and RMSNormalization over any trailing axes.
#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

struct Rows {
  Shape original, flat, statistics;  // statistics: the leading axes, then ones
  int64_t columns = 1;
};

Rows rows_of(const DecodeContext& c) {
  Rows r;
  r.original = c.shape(0);
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  r.statistics = r.original;
  for (size_t i = axis; i < r.original.size(); ++i) {
    r.columns *= r.original[i];
    r.statistics[i] = 1;
  }
  r.flat.assign(r.original.begin(), r.original.begin() + axis);
  r.flat.push_back(r.columns);
  return r;
}

// Scale and bias broadcast to the normalised axes and flat.
ValueId flat_factor(DecodeContext& c, int input, const Rows& r) {
  const size_t leading = r.flat.size() - 1;
  const Shape target(r.original.begin() + static_cast<int64_t>(leading), r.original.end());
  if (elements(c.shape(input)) == r.columns) return c.build.reshape(c.in(input), {r.columns});
  return c.build.reshape(c.build.broadcast(c.in(input), target), {r.columns});
}

void layer_norm(DecodeContext& c) {
  const Rows r = rows_of(c);
  std::vector<ValueId> inputs = {c.build.reshape(c.in(0), r.flat), flat_factor(c, 1, r)};
  if (c.has(2)) inputs.push_back(flat_factor(c, 2, r));
  const std::vector<ValueId> y = c.build.add_multi(OpKind::layer_norm, inputs, {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}});
  c.out(0, c.build.reshape(y[0], r.original));
  if (c.wants(1)) c.out(1, c.build.reshape(y[1], r.statistics));
  if (c.wants(2)) c.out(2, c.build.reshape(y[2], r.statistics));
}

void rms_norm(DecodeContext& c) {
  const Rows r = rows_of(c);
  const std::vector<ValueId> inputs = {c.build.reshape(c.in(0), r.flat), flat_factor(c, 1, r)};
  const std::vector<ValueId> y = c.build.add_multi(OpKind::rms_norm, inputs, {{Attr::epsilon, c.attr_float("epsilon", 1e-5)}});
  c.out(0, c.build.reshape(y[0], r.original));
}

}  // namespace

void add_norm_decoders(DecoderTable& t) {
  t["LayerNormalization"] = layer_norm;
  t["RMSNormalization"] = rms_norm;
}

}  // namespace zeroplan
