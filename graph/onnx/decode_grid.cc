// GridSample, AffineGrid; the table of the operators on places in images.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/boxes.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// One element along one spatial axis that a sample is made of: places [N, M] of i64 inside the axis, weights [N, M] (kNone: 1).
struct Tap {
  ValueId place = kNone, weight = kNone;
};

struct GridRules {
  std::string mode, padding;
  bool align_corners = false;
};

class AxisSampler {
 public:
  AxisSampler(FoldingBuilder& build, const GridRules& rules, int64_t size) : a_(build), rules_(rules), size_(static_cast<double>(size)) {}

  // x: places on the axis in [-1, 1].
  std::vector<Tap> taps(ValueId x) {
    x = rules_.align_corners ? a_.times(a_.plus(x, 1), (size_ - 1) / 2) : a_.times(a_.plus(a_.times(a_.plus(x, 1), size_), -1), 0.5);
    if (rules_.mode == "cubic") return cubic_taps(x);
    x = kept_inside(x);
    if (rules_.mode == "nearest") return {tap(rounded(x), kNone)};
    const ValueId first = floored(x), part = a_.sub(x, floating(first, x));
    return {tap(first, rest(part)), tap(a_.plus(first, 1), part)};
  }

 private:
  ValueId floating(ValueId i, ValueId like) { return a_.build.cast(i, a_.build.dtype(like)); }
  ValueId rest(ValueId part) { return a_.sub(a_.number(1, part), part); }

  // The largest integer that is not above x; no gradient.
  ValueId floored(ValueId x) {
    const ValueId cut = a_.build.cast(x, DType::i64);
    return a_.sub(cut, a_.build.cast(a_.less(x, floating(cut, x)), DType::i64));
  }

  // Half to even.
  ValueId rounded(ValueId x) {
    const ValueId low = floored(x), part = a_.sub(x, floating(low, x));
    const ValueId half = a_.number(0.5, part), two = a_.number(2, low);
    const ValueId odd = a_.build.cast(a_.sub(low, a_.mul(a_.div(low, two), two)), DType::boolean);
    const ValueId up = a_.build.add(OpKind::logical_or, {a_.less(half, part), a_.both(a_.equal(part, half), odd)});
    return a_.add(low, a_.build.cast(up, DType::i64));
  }

  // Folded back at the borders as often as it takes: the distance from the lower one runs up and down with a period of twice the span.
  ValueId reflected(ValueId x) {
    const double low = rules_.align_corners ? 0 : -0.5, span = rules_.align_corners ? size_ - 1 : size_;
    if (span <= 0) return a_.mul(x, a_.number(0, x));
    const ValueId distance = a_.build.add(OpKind::abs, {a_.plus(x, -low)});
    const ValueId rounds = floating(floored(a_.times(distance, 1 / (2 * span))), x);
    const ValueId up = a_.sub(distance, a_.times(rounds, 2 * span));
    const ValueId down = a_.sub(a_.number(2 * span, up), up);
    return a_.plus(a_.choose(a_.below(up, span), up, down), low);
  }

  ValueId kept_inside(ValueId x) {
    if (rules_.padding == "reflection") x = reflected(x);
    return rules_.padding == "zeros" ? x : a_.clamp(x, 0, size_ - 1);
  }

  // With zeros as padding, an element outside weighs nothing.
  Tap tap(ValueId place, ValueId weight) {
    const ValueId near = a_.clamp(place, 0, size_ - 1);
    if (rules_.padding != "zeros") return {near, weight};
    const ValueId inside = a_.equal(near, place);
    if (weight == kNone) return {near, inside};
    return {near, a_.mul(weight, a_.build.cast(inside, a_.build.dtype(weight)))};
  }

  // Keys' kernel with A = -0.75; each neighbour is kept inside by itself.
  std::vector<Tap> cubic_taps(ValueId x) {
    const double A = -0.75;
    const ValueId first = floored(x), t = a_.sub(x, floating(first, x));
    const auto near = [&](ValueId d) { return a_.plus(a_.mul(a_.mul(a_.plus(a_.times(d, A + 2), -(A + 3)), d), d), 1); };
    const auto far = [&](ValueId d) { return a_.plus(a_.mul(a_.plus(a_.mul(a_.plus(a_.times(d, A), -5 * A), d), 8 * A), d), -4 * A); };
    const ValueId u = rest(t);
    const ValueId weights[] = {far(a_.plus(t, 1)), near(t), near(u), far(a_.plus(u, 1))};
    std::vector<Tap> taps;
    for (int k = 0; k < 4; ++k) {
      ValueId place = a_.plus(first, k - 1);
      if (rules_.padding == "reflection") place = a_.build.cast(kept_inside(floating(place, x)), DType::i64);
      taps.push_back(tap(place, weights[k]));
    }
    return taps;
  }

  Arithmetic a_;
  const GridRules& rules_;
  const double size_;
};

// Adds up table rows over all choices of one tap per axis. table [N, P, C] with P the product of `sizes`; the result [N, M, C].
class TapSum {
 public:
  TapSum(FoldingBuilder& build, ValueId table, const Shape& sizes, const std::vector<std::vector<Tap>>& taps)
      : a_(build), table_(table), sizes_(sizes), taps_(taps) {}

  ValueId run() {
    add_terms(0, {});
    return sum_;
  }

 private:
  ValueId joined(ValueId a, ValueId b) { return a == kNone ? b : b == kNone ? a : a_.mul(a, b); }

  // As deep as there are axes.
  void add_terms(size_t axis, const Tap& so_far) {
    if (axis == sizes_.size()) return add_term(so_far);
    for (const Tap& tap : taps_[axis]) {
      Tap next = tap;
      if (axis > 0) next.place = a_.add(a_.times(so_far.place, static_cast<double>(sizes_[axis])), tap.place);
      if (tap.weight != kNone) next.weight = a_.build.cast(tap.weight, a_.build.dtype(table_));
      next.weight = joined(so_far.weight, next.weight);
      add_terms(axis + 1, next);
    }
  }

  void add_term(const Tap& tap) {
    ValueId term = a_.gather_rows(table_, tap.place);
    if (tap.weight != kNone) {
      Shape column = a_.build.shape(tap.weight);
      column.push_back(1);
      term = a_.mul(term, a_.build.reshape(tap.weight, column));
    }
    sum_ = sum_ == kNone ? term : a_.add(sum_, term);
  }

  Arithmetic a_;
  ValueId table_, sum_ = kNone;
  const Shape& sizes_;
  const std::vector<std::vector<Tap>>& taps_;
};

GridRules grid_rules(const DecodeContext& c) {
  GridRules rules{c.attr_string("mode", "linear"), c.attr_string("padding_mode", "zeros"), c.attr_int("align_corners", 0) != 0};
  if (rules.mode == "bilinear") rules.mode = "linear";
  if (rules.mode == "bicubic") rules.mode = "cubic";
  if (rules.mode != "linear" && rules.mode != "cubic" && rules.mode != "nearest")
    throw Error(fmt::format("mode '{}' is unknown", rules.mode));
  if (rules.padding != "zeros" && rules.padding != "border" && rules.padding != "reflection")
    throw Error(fmt::format("padding_mode '{}' is unknown", rules.padding));
  return rules;
}

// x [N, C, sizes…], grid [N, to…, axes]; the last number of the grid is for the first axis.
void grid_sample(DecodeContext& c) {
  const Shape x = c.shape(0), grid = c.shape(1);
  const int64_t axes = c.rank(0) - 2;
  if (axes < 1 || c.rank(1) != c.rank(0) || grid.back() != axes || grid[0] != x[0])
    throw Error(fmt::format("grid {} does not fit input {}", to_string(grid), to_string(x)));
  const GridRules rules = grid_rules(c);
  const Shape sizes(x.begin() + 2, x.end()), to(grid.begin() + 1, grid.end() - 1);
  const int64_t count = elements(to);
  const ValueId points = c.build.reshape(c.in(1), {x[0], count, axes});
  std::vector<std::vector<Tap>> taps;
  for (int64_t i = 0; i < axes; ++i) taps.push_back(AxisSampler(c.build, rules, sizes[i]).taps(take_one(c.build, points, 2, axes - 1 - i)));
  const ValueId table = c.build.transpose(c.build.reshape(c.in(0), {x[0], x[1], elements(sizes)}), {0, 2, 1});
  const ValueId sampled = c.build.transpose(TapSum(c.build, table, sizes, taps).run(), {0, 2, 1});
  Shape result = {x[0], x[1]};
  result.insert(result.end(), to.begin(), to.end());
  c.out(0, c.build.reshape(sampled, result));
}

// Homogeneous places of the pixels in [-1, 1], the last axis first: [M, axes + 1].
HostTensor pixel_places(FoldingBuilder& build, const Shape& sizes, bool align_corners, DType dtype) {
  const auto axes = static_cast<int64_t>(sizes.size());
  const Strides strides = contiguous_strides(sizes);
  HostTensor out = build.table(dtype, {elements(sizes), axes + 1});
  for (int64_t n = 0; n < elements(sizes); ++n) {
    for (int64_t i = 0; i < axes; ++i) {
      const double at = static_cast<double>(n / strides[i] % sizes[i]), size = static_cast<double>(sizes[i]);
      const double place = align_corners ? (sizes[i] == 1 ? -1 : 2 * at / (size - 1) - 1) : (2 * at + 1) / size - 1;
      out.set(n * (axes + 1) + axes - 1 - i, place);
    }
    out.set(n * (axes + 1) + axes, 1);
  }
  return out;
}

void affine_grid(DecodeContext& c) {
  const std::vector<int64_t> size = c.ints(1, "size");
  const Shape theta = c.shape(0), spatial(size.begin() + std::min<int64_t>(2, static_cast<int64_t>(size.size())), size.end());
  const auto axes = static_cast<int64_t>(spatial.size());
  if (axes < 1 || theta != Shape{size[0], axes, axes + 1})
    throw Error(fmt::format("theta {} does not fit size {}", to_string(theta), to_string(size)));
  const ValueId places = c.build.constant(pixel_places(c.build, spatial, c.attr_int("align_corners", 0) != 0, c.build.dtype(c.in(0))));
  const ValueId grid = c.build.add(OpKind::matmul, {places, c.build.transpose(c.in(0), {0, 2, 1})});
  Shape to = {theta[0]};
  to.insert(to.end(), spatial.begin(), spatial.end());
  to.push_back(axes);
  c.out(0, c.build.reshape(grid, to));
}

}  // namespace

void add_grid_decoders(DecoderTable& t) {
  t["GridSample"] = grid_sample;
  t["AffineGrid"] = {affine_grid, gradient_to({0})};
  t["RoiAlign"] = {decode_roi_align, gradient_to({0, 1})};
  t["NonMaxSuppression"] = {decode_non_max_suppression, no_gradient()};
}

}  // namespace zeroplan
