#include "graph/onnx/attention_bias.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 0 where a key is seen, -∞ where not.
Term additive(Term seen, DType dtype) {
  FoldingBuilder& build = seen.build();
  const Term none(build, build.scalar(0, dtype));
  return where(seen, none, -kInfinity);
}

// The mask may be shorter than the keys: the rest is hidden.
Term mask_of(DecodeContext& c, const BiasSizes& sizes, DType dtype) {
  Term mask = term(c, 3);
  if (mask.dtype() == DType::boolean) mask = additive(mask, dtype);
  if (mask.rank() == 0) throw Error("its mask has no axis of keys");
  Shape rest = mask.shape();
  rest.back() = sizes.keys - rest.back();
  if (mask.shape().back() == 1 || rest.back() == 0) return mask.cast(dtype);
  if (rest.back() < 0) throw Error(fmt::format("its mask of shape {} is longer than the {} keys", to_string(mask.shape()), sizes.keys));
  return concat({mask, mask.number(-kInfinity).broadcast(rest)}, mask.rank() - 1).cast(dtype);
}

// Positions of keys that each query sees; `position` is the queries' own, [T,1] or [B,1,T,1].
std::optional<Term> seen_keys(DecodeContext& c, Term position, Term key, bool causal) {
  std::optional<Term> seen;
  const auto restrict = [&](Term next) { seen = seen ? *seen && next : next; };
  if (causal) restrict(key <= position);
  const int64_t left = c.attr_int("left_window_size", -1), right = c.attr_int("right_window_size", -1);
  if (left < -1 || right < -1) throw Error(fmt::format("windows of {} and {} are not possible", left, right));
  if (left >= 0) restrict(key >= position - static_cast<double>(left));
  if (right >= 0) restrict(key <= position + static_cast<double>(right));
  return seen;
}

}  // namespace

std::optional<Term> attention_bias(DecodeContext& c, const BiasSizes& sizes, DType dtype, bool causal) {
  std::optional<Term> bias;
  const auto add = [&](Term next) { bias = bias ? *bias + next : next; };
  if (c.has(3)) add(mask_of(c, sizes, dtype));
  const Term key = positions(c.build, sizes.keys, 1, 2), query = positions(c.build, sizes.queries, 0, 2);
  Term position = query + static_cast<double>(sizes.offset);
  if (c.has(6)) {
    if (elements(c.shape(6)) != sizes.batch)
      throw Error(fmt::format("nonpad_kv_seqlen of shape {} does not fit a batch of {}", to_string(c.shape(6)), sizes.batch));
    const Term valid = term(c, 6).cast(DType::i64).reshape({sizes.batch, 1, 1, 1});
    position = query + (valid - static_cast<double>(sizes.queries));
    add(additive(key < valid, dtype));
  }
  if (const std::optional<Term> seen = seen_keys(c, position, key, causal)) add(additive(*seen, dtype));
  return bias;
}

}  // namespace zeroplan
