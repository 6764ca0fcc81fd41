// RotaryEmbedding of opset 23 as slices, products and a concatenation.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/heads.h"

namespace zeroplan {
namespace {

// Rows of the cache as [B,1,T,width].
Term cache(DecodeContext& c, int input, int64_t width) {
  const Term rows = c.has(3) ? gather(term(c, input), term(c, 3), 0) : term(c, input);
  const Shape s = rows.shape();
  if (s.size() != 3 || s[2] != width) throw Error(fmt::format("its cache of shape {} does not have {} columns", to_string(s), width));
  return rows.reshape({s[0], 1, s[1], s[2]});
}

// Pairs of x [B,H,T,D] turned, the first 2·width of each D: neighbours, or `width` apart.
Term rotate(DecodeContext& c, Term x, int64_t width) {
  const bool interleaved = c.attr_int("interleaved", 0) != 0;
  const Term cos = cache(c, 1, width), sin = cache(c, 2, width);
  const int64_t step = interleaved ? 2 : 1;
  const Term a = part(x, 3, 0, width, step), b = part(x, 3, interleaved ? 1 : width, width, step);
  const Term ac = a * cos, bs = b * sin, real = ac - bs;
  const Term as = a * sin, bc = b * cos, imaginary = as + bc;
  if (!interleaved) return concat({real, imaginary}, 3);
  Shape flat = real.shape();
  flat.back() *= 2;
  return stack({real, imaginary}, 4).reshape(flat);
}

void rotary_embedding(DecodeContext& c) {
  const Shape given = c.shape(0);
  const Term x = with_heads(c, 0, "num_heads");
  const int64_t size = x.shape()[3], stated = c.attr_int("rotary_embedding_dim", 0), rotated = stated > 0 ? stated : size;
  if (rotated > size || rotated % 2 != 0) throw Error(fmt::format("rotary_embedding_dim {} does not fit heads of {}", rotated, size));
  Term y = rotate(c, x, rotated / 2);
  if (rotated < size) y = concat({y, part(x, 3, rotated, size - rotated)}, 3);
  if (given.size() == 3) y = y.transpose({0, 2, 1, 3}).reshape(given);
  result(c, y);
}

}  // namespace

void add_rotary_decoders(DecoderTable& t) { t["RotaryEmbedding"] = {rotary_embedding, gradient_to({0})}; }

}  // namespace zeroplan
