// LayerNormalization and RMSNormalization over any trailing axes.
#include "base/error.h"
#include "graph/onnx/decode_powers.h"
#include "graph/onnx/terms.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

struct Rows {
  Shape original, flat, normalized;
  std::vector<int64_t> axes;  // that are normalised over
  int64_t columns = 1;
};

Rows rows_of(const DecodeContext& c) {
  Rows r;
  r.original = c.shape(0);
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  r.flat.assign(r.original.begin(), r.original.begin() + axis);
  for (int64_t i = axis; i < c.rank(0); ++i) {
    r.axes.push_back(i);
    r.normalized.push_back(r.original[i]);
    r.columns *= r.original[i];
  }
  r.flat.push_back(r.columns);
  return r;
}

bool is_flat(const DecodeContext& c, int input, const Rows& r) {
  return elements(c.shape(input)) == r.columns || broadcasts_to(c.shape(input), r.normalized);
}

// Scale or bias that fits the normalised axes, flat.
Term flat_factor(DecodeContext& c, int input, const Rows& r) {
  const Term x = term(c, input);
  return (elements(x.shape()) == r.columns ? x : x.broadcast(r.normalized)).reshape({r.columns});
}

// One factor for each column, where the node's own comes later.
Term ones(DecodeContext& c, const Rows& r) { return {c.build, c.build.filled(1, {r.columns}, c.build.dtype(c.in(0)))}; }

// Mean and inverse deviation as outputs: formulas of their own, through which gradients go.
void statistics(DecodeContext& c, const Rows& r, double epsilon) {
  const Term x = term(c, 0), mean = reduce(OpKind::reduce_mean, x, r.axes, true), centered = x - mean;
  if (c.wants(1)) result(c, mean, 1);
  if (c.wants(2)) result(c, 1 / sqrt(reduce(OpKind::reduce_mean, centered * centered, r.axes, true) + epsilon), 2);
}

void normalize(DecodeContext& c, OpKind op) {
  const Rows r = rows_of(c);
  const double epsilon = c.attr_float("epsilon", 1e-5);
  const bool bias = op == OpKind::layer_norm && c.has(2), scale_fits = is_flat(c, 1, r), fits = scale_fits && (!bias || is_flat(c, 2, r));
  std::vector<ValueId> inputs = {term(c, 0).reshape(r.flat).id(), (fits ? flat_factor(c, 1, r) : ones(c, r)).id()};
  if (bias && fits) inputs.push_back(flat_factor(c, 2, r).id());
  Term y = Term(c.build, c.build.add(op, std::move(inputs), {{Attr::epsilon, epsilon}})).reshape(r.original);
  if (!fits) {  // factors that differ between rows
    y = y * term(c, 1);
    if (bias) y = y + term(c, 2);
  }
  result(c, y);
  if (op == OpKind::layer_norm && (c.wants(1) || c.wants(2))) statistics(c, r, epsilon);
}

void layer_norm(DecodeContext& c) { normalize(c, OpKind::layer_norm); }
void rms_norm(DecodeContext& c) { normalize(c, OpKind::rms_norm); }

}  // namespace

void add_norm_decoders(DecoderTable& t) {
  t["LayerNormalization"] = layer_norm;
  t["RMSNormalization"] = rms_norm;
}

}  // namespace zeroplan
