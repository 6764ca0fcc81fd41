// RoiAlign: bilinear samples at fixed places of each region's bins, averaged or maximised.
#include "graph/onnx/boxes.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

// The two elements along one axis that a sample lies between; all [R, samples].
struct Neighbours {
  Term low, high;                // places, i64
  Term low_weight, high_weight;  // 0 for samples outside the image
};

struct RoiRules {
  int64_t rows, columns, per_bin;
  double scale, offset;
  bool average;
};

class RoiAxis {
 public:
  explicit RoiAxis(const RoiRules& rules) : rules_(rules) {}

  // first, last: [R] the region's borders on the axis, in pixels of the model's input; `bins` of them on `size` elements.
  Neighbours neighbours(Term first, Term last, int64_t bins, int64_t size) const {
    return around(samples(in_elements(first), in_elements(last), bins), static_cast<double>(size));
  }

 private:
  // [R], the same in elements.
  Term in_elements(Term border) const { return plus(times(border, rules_.scale), -rules_.offset); }

  Term samples(Term start, Term end, int64_t bins) const {
    const int64_t count = checked_mul(bins, rules_.per_bin), regions = elements(start.shape());
    HostTensor steps = start.build().table(start.dtype(), {1, count});
    for (int64_t i = 0; i < count; ++i) steps.set(i, (static_cast<double>(i) + 0.5) / static_cast<double>(count));
    const Term along(start.build(), start.build().constant(std::move(steps)));
    const Term length = end - start, extent = rules_.offset == 0 ? maximum(length, 1) : length;
    return start.reshape({regions, 1}) + extent.reshape({regions, 1}) * along;
  }

  // Up to one element outside the image the border counts, behind that nothing.
  static Neighbours around(Term x, double size) {
    const Term inside = (x >= -1 && x <= size).cast(x.dtype()), place = clamp(x, 0, size - 1);
    const Term low = place.cast(DType::i64), high = minimum(low + 1, size - 1), part = place - low.cast(x.dtype());
    return {low, high, inside * (1 - part), inside * part};
  }

  const RoiRules& rules_;
};

// Samples per bin and axis; where the node leaves it to the size of the regions, they must be known and agree.
int64_t samples_per_bin(DecodeContext& c, RoiRules rules) {
  const int64_t stated = c.attr_int("sampling_ratio", 0);
  if (stated < 0) throw Error("its sampling_ratio is negative");
  if (stated > 0) return stated;
  const HostTensor& rois = c.constant(1, "regions, with sampling_ratio 0,");
  int64_t found = 0;
  for (int64_t i = 0; i < rois.count() / 4; ++i) {
    for (int axis = 0; axis < 2; ++axis) {
      double length = (rois.get(4 * i + axis + 2) - rois.get(4 * i + axis)) * rules.scale;
      if (rules.offset == 0) length = std::max(length, 1.0);
      const int64_t wanted = checked_int(std::ceil(length / static_cast<double>(axis == 0 ? rules.columns : rules.rows)));
      if (found != 0 && wanted != found) throw Error("with sampling_ratio 0 its regions need different numbers of samples; state a ratio");
      found = wanted;
    }
  }
  if (found < 1) throw Error("with sampling_ratio 0 its regions have no samples; state a ratio");
  return found;
}

RoiRules roi_rules(DecodeContext& c) {
  const std::string mode = c.attr_string("mode", "avg"), coordinates = c.attr_string("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") throw Error(fmt::format("mode '{}' is unknown", mode));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    throw Error(fmt::format("coordinate_transformation_mode '{}' is unknown", coordinates));
  RoiRules rules{c.attr_int("output_height", 1),   c.attr_int("output_width", 1),           0,
                 c.attr_float("spatial_scale", 1), coordinates == "half_pixel" ? 0.5 : 0.0, mode == "avg"};
  if (rules.rows < 1 || rules.columns < 1) throw Error("its output is empty");
  rules.per_bin = samples_per_bin(c, rules);
  return rules;
}

// table [N·H·W, C]; the four corners of all samples [R, rows, columns], weighted; summed for the average, else the largest.
Term corners(Term table, Term first_row, const Neighbours& y, const Neighbours& x, int64_t width, bool average) {
  const int64_t regions = y.low.shape()[0], rows = y.low.shape()[1], columns = x.low.shape()[1];
  std::optional<Term> joined;
  for (const auto& [row, row_weight] : {std::pair{y.low, y.low_weight}, {y.high, y.high_weight}}) {
    for (const auto& [column, column_weight] : {std::pair{x.low, x.low_weight}, {x.high, x.high_weight}}) {
      const Term line = times(row + first_row, static_cast<double>(width)).reshape({regions, rows, 1});
      const Term weight = row_weight.reshape({regions, rows, 1, 1}) * column_weight.reshape({regions, 1, columns, 1});
      const Term term = gather(table, line + column.reshape({regions, 1, columns}), 0) * weight;
      joined = !joined ? term : average ? *joined + term : maximum(*joined, term);
    }
  }
  return *joined;
}

}  // namespace

void decode_roi_align(DecodeContext& c) {
  const Shape x = c.shape(0), rois = c.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4)
    throw Error(fmt::format("input {} and regions {} do not fit", to_string(x), to_string(rois)));
  const RoiRules rules = roi_rules(c);
  const RoiAxis axis(rules);
  const auto border = [&](int64_t i) { return item(term(c, 1), 1, i); };
  const Neighbours columns = axis.neighbours(border(0), border(2), rules.columns, x[3]);
  const Neighbours rows = axis.neighbours(border(1), border(3), rules.rows, x[2]);
  const Term image = term(c, 2).cast(DType::i64).reshape({rois[0], 1});
  const Term table = term(c, 0).transpose({0, 2, 3, 1}).reshape({x[0] * x[2] * x[3], x[1]});
  const Term samples = corners(table, times(image, static_cast<double>(x[2])), rows, columns, x[3], rules.average);
  const Term bins = samples.reshape({rois[0], rules.rows, rules.per_bin, rules.columns, rules.per_bin, x[1]});
  const Term pooled = reduce(rules.average ? OpKind::reduce_mean : OpKind::reduce_max, bins, {2, 4}, false);
  result(c, pooled.transpose({0, 3, 1, 2}));
}

}  // namespace zeroplan
