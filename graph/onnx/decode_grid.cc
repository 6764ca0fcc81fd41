// GridSample, AffineGrid; the table of the operators on places in images.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/boxes.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// One element along one spatial axis that a sample is made of: places [N, M] of i64 inside the axis, weights [N, M] (none: 1).
struct Tap {
  Term place;
  std::optional<Term> weight;
};

struct GridRules {
  std::string mode, padding;
  bool align_corners = false;
};

class AxisSampler {
 public:
  AxisSampler(const GridRules& rules, int64_t size) : rules_(rules), size_(static_cast<double>(size)) {}

  // x: places on the axis in [-1, 1].
  std::vector<Tap> taps(Term x) const {
    x = rules_.align_corners ? times(x + 1, (size_ - 1) / 2) : (times(x + 1, size_) - 1) * 0.5;
    if (rules_.mode == "cubic") return cubic_taps(x);
    x = kept_inside(x);
    if (rules_.mode == "nearest") return {tap(rounded(x), std::nullopt)};
    const Term first = floored(x), part = x - first.cast(x.dtype());
    return {tap(first, 1 - part), tap(first + 1, part)};
  }

 private:
  // The largest integer that is not above x; no gradient.
  static Term floored(Term x) {
    const Term cut = x.cast(DType::i64);
    return cut - (x < cut.cast(x.dtype())).cast(DType::i64);
  }

  // Half to even.
  static Term rounded(Term x) {
    const Term low = floored(x), part = x - low.cast(x.dtype());
    const Term odd = (low - low / 2 * 2).cast(DType::boolean);
    return low + (part > 0.5 || (part == 0.5 && odd)).cast(DType::i64);
  }

  // Folded back at the borders as often as it takes: the distance from the lower one runs up and down with a period of twice the span.
  Term reflected(Term x) const {
    const double low = rules_.align_corners ? 0 : -0.5, span = rules_.align_corners ? size_ - 1 : size_;
    if (span <= 0) return x * 0;
    const Term distance = abs(plus(x, -low)), rounds = floored(distance * (1 / (2 * span))).cast(x.dtype());
    const Term up = distance - rounds * (2 * span);
    return plus(where(up < span, up, 2 * span - up), low);
  }

  Term kept_inside(Term x) const {
    if (rules_.padding == "reflection") x = reflected(x);
    return rules_.padding == "zeros" ? x : clamp(x, 0, size_ - 1);
  }

  // With zeros as padding, an element outside weighs nothing.
  Tap tap(Term place, const std::optional<Term>& weight) const {
    const Term near = clamp(place, 0, size_ - 1);
    if (rules_.padding != "zeros") return {near, weight};
    const Term inside = near == place;
    return {near, weight ? *weight * inside.cast(weight->dtype()) : inside};
  }

  // Keys' kernel with A = -0.75; each neighbour is kept inside by itself.
  std::vector<Tap> cubic_taps(Term x) const {
    const double A = -0.75;
    const Term first = floored(x), t = x - first.cast(x.dtype()), u = 1 - t;
    const auto near = [&](Term d) { return ((d * (A + 2) - (A + 3)) * d) * d + 1; };
    const auto far = [&](Term d) { return ((d * A - 5 * A) * d + 8 * A) * d - 4 * A; };
    const Term weights[] = {far(t + 1), near(t), near(u), far(u + 1)};
    std::vector<Tap> taps;
    for (int k = 0; k < 4; ++k) {
      Term place = plus(first, k - 1);
      if (rules_.padding == "reflection") place = kept_inside(place.cast(x.dtype())).cast(DType::i64);
      taps.push_back(tap(place, weights[k]));
    }
    return taps;
  }

  const GridRules& rules_;
  const double size_;
};

// Adds up table rows over all choices of one tap per axis. table [N, P, C] with P the product of `sizes`; the result [N, M, C].
class TapSum {
 public:
  TapSum(Term table, const Shape& sizes, const std::vector<std::vector<Tap>>& taps) : table_(table), sizes_(sizes), taps_(taps) {}

  Term run() {
    for (const Tap& tap : taps_[0]) add_terms(1, {tap.place, weight_of(tap)});
    return *sum_;
  }

 private:
  std::optional<Term> weight_of(const Tap& tap) const {
    return tap.weight ? std::optional(tap.weight->cast(table_.dtype())) : std::nullopt;
  }

  // As deep as there are axes.
  void add_terms(size_t axis, const Tap& so_far) {
    if (axis == sizes_.size()) return add_term(so_far);
    for (const Tap& tap : taps_[axis]) {
      const std::optional<Term> own = weight_of(tap);
      const auto both = so_far.weight && own ? std::optional(*so_far.weight * *own) : own ? own : so_far.weight;
      add_terms(axis + 1, {times(so_far.place, static_cast<double>(sizes_[axis])) + tap.place, both});
    }
  }

  void add_term(const Tap& tap) {
    Term term = gather_rows(table_, tap.place);
    if (tap.weight) {
      Shape column = tap.weight->shape();
      column.push_back(1);
      term = term * tap.weight->reshape(column);
    }
    sum_ = sum_ ? *sum_ + term : term;
  }

  Term table_;
  std::optional<Term> sum_;
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
  const Term points = term(c, 1).reshape({x[0], count, axes});
  std::vector<std::vector<Tap>> taps;
  for (int64_t i = 0; i < axes; ++i) taps.push_back(AxisSampler(rules, sizes[i]).taps(item(points, 2, axes - 1 - i)));
  const Term table = term(c, 0).reshape({x[0], x[1], elements(sizes)}).transpose({0, 2, 1});
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), to.begin(), to.end());
  result(c, TapSum(table, sizes, taps).run().transpose({0, 2, 1}).reshape(shape));
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
  HostTensor places = pixel_places(c.build, spatial, c.attr_int("align_corners", 0) != 0, c.build.dtype(c.in(0)));
  const Term grid = matmul({c.build, c.build.constant(std::move(places))}, term(c, 0).transpose({0, 2, 1}));
  Shape to = {theta[0]};
  to.insert(to.end(), spatial.begin(), spatial.end());
  to.push_back(axes);
  result(c, grid.reshape(to));
}

}  // namespace

void add_grid_decoders(DecoderTable& t) {
  t["GridSample"] = grid_sample;
  t["AffineGrid"] = {affine_grid, gradient_to({0})};
  t["RoiAlign"] = {decode_roi_align, gradient_to({0, 1})};
  t["NonMaxSuppression"] = {decode_non_max_suppression, no_gradient()};
}

}  // namespace zeroplan
