// RotaryEmbedding of opset 23 as slices, products and a concatenation.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

ValueId last_axis(DecodeContext& c, ValueId x, int64_t start, int64_t step, int64_t count) {
  Shape shape = c.build.shape(x);
  std::vector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts.back() = start;
  steps.back() = step;
  shape.back() = count;
  return c.build.add(OpKind::slice, {x}, {{Attr::starts, starts}, {Attr::steps, steps}, {Attr::shape, shape}});
}

ValueId joined(DecodeContext& c, const std::vector<ValueId>& parts) {
  const auto axis = static_cast<int64_t>(c.build.shape(parts[0]).size()) - 1;
  return c.build.add(OpKind::concat, parts, {{Attr::axis, axis}});
}

// Rows of the cache as [B,1,T,width].
ValueId cache(DecodeContext& c, int input, int64_t width) {
  ValueId rows = c.in(input);
  if (c.has(3)) rows = c.build.add(OpKind::gather, {rows, c.in(3)}, {{Attr::axis, int64_t{0}}});
  const Shape s = c.build.shape(rows);
  if (s.size() != 3 || s[2] != width) throw Error(fmt::format("its cache of shape {} does not have {} columns", to_string(s), width));
  return c.build.reshape(rows, {s[0], 1, s[1], s[2]});
}

// [B,T,H·D] to [B,H,T,D]
ValueId with_heads(DecodeContext& c) {
  if (c.rank(0) == 4) return c.in(0);
  const int64_t heads = c.attr_int("num_heads", 0);
  const Shape s = c.shape(0);
  if (s.size() != 3 || heads <= 0 || s[2] % heads != 0) throw Error("its input needs rank 4, or rank 3 and the attribute num_heads");
  return c.build.transpose(c.build.reshape(c.in(0), {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

ValueId rotate(DecodeContext& c, ValueId x, int64_t width) {
  const bool interleaved = c.attr_int("interleaved", 0) != 0;
  const ValueId cos = cache(c, 1, width), sin = cache(c, 2, width);
  const ValueId a = last_axis(c, x, 0, interleaved ? 2 : 1, width),
                b = last_axis(c, x, interleaved ? 1 : width, interleaved ? 2 : 1, width);
  const auto times = [&](ValueId p, ValueId q) { return c.build.add(OpKind::mul, {p, q}); };
  const ValueId real = c.build.add(OpKind::sub, {times(a, cos), times(b, sin)}),
                imaginary = c.build.add(OpKind::add, {times(a, sin), times(b, cos)});
  if (!interleaved) return joined(c, {real, imaginary});
  Shape pair = c.build.shape(real), flat = pair;
  pair.push_back(1);
  flat.back() *= 2;
  return c.build.reshape(joined(c, {c.build.reshape(real, pair), c.build.reshape(imaginary, pair)}), flat);
}

void rotary_embedding(DecodeContext& c) {
  const Shape given = c.shape(0);
  const ValueId x = with_heads(c);
  const Shape s = c.build.shape(x);
  const int64_t stated = c.attr_int("rotary_embedding_dim", 0), rotated = stated > 0 ? stated : s[3];
  if (rotated > s[3] || rotated % 2 != 0) throw Error(fmt::format("rotary_embedding_dim {} does not fit heads of {}", rotated, s[3]));
  ValueId y = rotate(c, x, rotated / 2);
  if (rotated < s[3]) y = joined(c, {y, last_axis(c, x, rotated, 1, s[3] - rotated)});
  if (given.size() == 3) y = c.build.reshape(c.build.transpose(y, {0, 2, 1, 3}), given);
  c.out(0, y);
}

}  // namespace

void add_rotary_decoders(DecoderTable& t) { t["RotaryEmbedding"] = {rotary_embedding, gradient_to({0})}; }

}  // namespace zeroplan
