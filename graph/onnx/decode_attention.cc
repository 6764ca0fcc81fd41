// Attention of opset 23: 4-d, or 3-d with head counts; grouped heads, causal, additive or boolean mask.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

// [B,T,H·D] to [B,H,T,D]
ValueId with_heads(DecodeContext& c, int input, const char* heads_attribute) {
  if (c.rank(input) == 4) return c.in(input);
  const int64_t heads = c.attr_int(heads_attribute, 0);
  const Shape& s = c.shape(input);
  if (c.rank(input) != 3 || heads <= 0 || s[2] % heads != 0)
    throw Error(fmt::format("its input {} {} needs rank 4, or rank 3 and the attribute {}", input, to_string(s), heads_attribute));
  return c.build.transpose(c.build.reshape(c.in(input), {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

ValueId additive_mask(DecodeContext& c, DType dtype) {
  const ValueId mask = c.in(3);
  if (c.build.dtype(mask) != DType::boolean) return mask;
  return c.build.add(OpKind::where, {mask, c.build.scalar(0, dtype), c.build.scalar(-std::numeric_limits<double>::infinity(), dtype)});
}

void refuse_extras(const DecodeContext& c) {
  if (c.has(4) || c.has(5) || c.wants(1) || c.wants(2))
    throw Error("past and present keys are not supported; export the model without a cache");
  if (c.has(6)) throw Error("nonpad_kv_seqlen is not supported; pass a mask");
  if (c.wants(3)) throw Error("its output of raw scores is not supported");
  if (c.attr_float("softcap", 0) != 0) throw Error("softcap is not supported");
}

void attention(DecodeContext& c) {
  refuse_extras(c);
  const bool flat = c.rank(0) == 3;
  const ValueId q = with_heads(c, 0, "q_num_heads"), k = with_heads(c, 1, "kv_num_heads"), v = with_heads(c, 2, "kv_num_heads");
  const Shape qs = c.build.shape(q), ks = c.build.shape(k);
  const int64_t causal = c.attr_int("is_causal", 0);
  if (causal && qs[2] != ks[2]) throw Error(fmt::format("is_causal with {} queries and {} keys is not supported", qs[2], ks[2]));
  const double scale = c.node.find("scale") ? c.attr_float("scale", 1) : 1 / std::sqrt(static_cast<double>(qs[3]));
  std::vector<ValueId> inputs = {q, k, v};
  if (c.has(3)) inputs.push_back(additive_mask(c, c.build.dtype(q)));
  ValueId y = c.build.add(OpKind::attention, inputs, {{Attr::scale, scale}, {Attr::causal, causal}});
  if (flat) y = c.build.reshape(c.build.transpose(y, {0, 2, 1, 3}), {qs[0], qs[2], qs[1] * c.build.shape(v)[3]});
  c.out(0, y);
}

}  // namespace

void add_attention_decoders(DecoderTable& t) { t["Attention"] = attention; }

}  // namespace zeroplan
