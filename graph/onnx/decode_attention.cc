// Attention of opsets 23 to 25: 4-d, or 3-d with head counts; grouped heads, caches, masks, windows, caps. The fused operator where it
// does the same, else its parts.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/attention_bias.h"
#include "graph/onnx/heads.h"
#include "graph/onnx/tensor_data.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

// What came before, and what is new; along the axis of positions.
Term with_past(DecodeContext& c, int past, Term x) { return c.has(past) ? concat({term(c, past), x}, 2) : x; }

// Each of the heads of k or v as often as query heads share it.
Term repeated(Term x, int64_t times) {
  if (times == 1) return x;
  const Shape s = x.shape();
  return x.reshape({s[0], s[1], 1, s[2], s[3]}).broadcast({s[0], s[1], times, s[2], s[3]}).reshape({s[0], s[1] * times, s[2], s[3]});
}

struct Operands {
  Term q, k, v;
  std::optional<Term> bias;  // added to the scores
  double scale = 1, softcap = 0;
};

bool fits_fused(const DecodeContext& c, const Operands& o) { return o.softcap == 0 && !c.wants(3) && o.k.shape() == o.v.shape(); }

Term fused(const Operands& o, bool causal) {
  std::vector<ValueId> inputs = {o.q.id(), o.k.id(), o.v.id()};
  if (o.bias) inputs.push_back(o.bias->id());
  FoldingBuilder& build = o.q.build();
  return {build, build.add(OpKind::attention, std::move(inputs), {{Attr::scale, o.scale}, {Attr::causal, int64_t{causal}}})};
}

// Rows whose keys are all masked give 0; their bias is left out, so that the exponentials stay finite.
Term softmax_of(Term scores, const std::optional<Term>& bias) {
  if (!bias) return apply(OpKind::softmax, scores);
  const Term hidden = reduce(OpKind::reduce_max, *bias, {bias->rank() - 1}, true) == -std::numeric_limits<double>::infinity();
  const Term p = apply(OpKind::softmax, scores + where(hidden, 0, *bias));
  return where(hidden, 0, p);
}

// Output 3 of the mode that the node states: 0 scores, 1 capped, 2 with the bias, 3 after the softmax.
Term composed(DecodeContext& c, const Operands& o) {
  const int64_t mode = c.attr_int("qk_matmul_output_mode", 0);
  const int64_t shared = o.q.shape()[1] / o.k.shape()[1];
  const Term raw = matmul(o.q, repeated(o.k, shared).transpose({0, 1, 3, 2})) * o.scale;
  const Term capped = o.softcap == 0 ? raw : tanh(raw / o.softcap) * o.softcap;
  const DType type = raw.dtype(), within = c.attr_int("softmax_precision", 0) == kOnnxDouble ? DType::f64 : type;
  const auto cast_bias = o.bias ? std::optional(o.bias->cast(within)) : std::nullopt;
  const Term p = softmax_of(capped.cast(within), cast_bias).cast(type);
  if (c.wants(3)) {
    if (mode < 0 || mode > 3) throw Error(fmt::format("qk_matmul_output_mode {} is unknown", mode));
    const Term biased = o.bias ? capped + *o.bias : capped;
    result(c, mode == 0 ? raw : mode == 1 ? capped : mode == 2 ? biased : p, 3);
  }
  return matmul(p, repeated(o.v, shared));
}

void check_heads(const Operands& o) {
  const Shape &q = o.q.shape(), &k = o.k.shape(), &v = o.v.shape();
  const bool fits = q[0] == k[0] && q[3] == k[3] && k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && k[1] > 0 && q[1] % k[1] == 0;
  if (!fits) throw Error(fmt::format("q {}, k {} and v {} do not fit each other", to_string(q), to_string(k), to_string(v)));
}

void attention(DecodeContext& c) {
  if (c.has(4) != c.has(5)) throw Error("past keys and past values go together");
  if (c.has(4) && c.has(6)) throw Error("nonpad_kv_seqlen does not go with past keys");
  const bool flat = c.rank(0) == 3;
  Operands o{with_heads(c, 0, "q_num_heads"), with_past(c, 4, with_heads(c, 1, "kv_num_heads")),
             with_past(c, 5, with_heads(c, 2, "kv_num_heads")), std::nullopt};
  check_heads(o);
  result(c, o.k, 1);
  result(c, o.v, 2);
  const Shape qs = o.q.shape(), ks = o.k.shape();
  o.scale = c.node.find("scale") ? c.attr_float("scale", 1) : 1 / std::sqrt(static_cast<double>(qs[3]));
  o.softcap = c.attr_float("softcap", 0);
  BiasSizes sizes{qs[0], qs[2], ks[2], c.has(4) ? c.shape(4)[2] : 0};
  // The fused operator's last query sees every key, as it does here where the offset is the difference of the two lengths.
  const bool causal = c.attr_int("is_causal", 0) != 0, aligned = !c.has(6) && sizes.keys - sizes.queries == sizes.offset;
  o.bias = attention_bias(c, sizes, o.q.dtype(), causal && !aligned);
  const bool by_kernel = fits_fused(c, o);
  if (!by_kernel && causal && aligned) o.bias = attention_bias(c, sizes, o.q.dtype(), true);
  Term y = by_kernel ? fused(o, causal && aligned) : composed(c, o);
  if (flat) y = y.transpose({0, 2, 1, 3}).reshape({qs[0], qs[2], qs[1] * o.v.shape()[3]});
  result(c, y);
}

}  // namespace

void add_attention_decoders(DecoderTable& t) { t["Attention"] = {attention, gradient_to_all().with_setting({3}, "a mask")}; }

}  // namespace zeroplan
