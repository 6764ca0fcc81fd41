// RoiAlign: bilinear samples at fixed places of each region's bins, averaged or maximised.
#include "graph/onnx/boxes.h"

#include <cmath>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/take.h"

namespace zeroplan {
namespace {

// The two elements along one axis that a sample lies between; all [R, samples].
struct Neighbours {
  ValueId low, high;                // places, i64
  ValueId low_weight, high_weight;  // 0 for samples outside the image
};

struct RoiRules {
  int64_t rows, columns, per_bin;
  double scale, offset;
  bool average;
};

class RoiAxis {
 public:
  RoiAxis(FoldingBuilder& build, const RoiRules& rules) : a_(build), rules_(rules) {}

  // first, last: [R] the region's borders on the axis, in pixels of the model's input; `bins` of them on `size` elements.
  Neighbours neighbours(ValueId first, ValueId last, int64_t bins, int64_t size) {
    return around(samples(in_elements(first), in_elements(last), bins), static_cast<double>(size));
  }

  // [R], the same in elements.
  ValueId in_elements(ValueId border) { return a_.plus(a_.times(border, rules_.scale), -rules_.offset); }
  ValueId extent(ValueId start, ValueId end) {
    const ValueId length = a_.sub(end, start);
    return rules_.offset == 0 ? a_.largest(length, a_.number(1, length)) : length;
  }

 private:
  ValueId samples(ValueId start, ValueId end, int64_t bins) {
    const int64_t count = checked_mul(bins, rules_.per_bin), regions = elements(a_.build.shape(start));
    HostTensor steps = a_.build.table(a_.build.dtype(start), {1, count});
    for (int64_t i = 0; i < count; ++i) steps.set(i, (static_cast<double>(i) + 0.5) / static_cast<double>(count));
    const ValueId along = a_.build.constant(std::move(steps));
    return a_.add(a_.build.reshape(start, {regions, 1}), a_.mul(a_.build.reshape(extent(start, end), {regions, 1}), along));
  }

  // Up to one element outside the image the border counts, behind that nothing.
  Neighbours around(ValueId x, double size) {
    const DType dtype = a_.build.dtype(x);
    const ValueId near =
        a_.both(a_.build.add(OpKind::greater_equal, {x, a_.number(-1, x)}), a_.build.add(OpKind::less_equal, {x, a_.number(size, x)}));
    const ValueId inside = a_.build.cast(near, dtype), place = a_.clamp(x, 0, size - 1);
    const ValueId low = a_.build.cast(place, DType::i64), high = a_.smallest(a_.plus(low, 1), a_.number(size - 1, low));
    const ValueId part = a_.sub(place, a_.build.cast(low, dtype));
    return {low, high, a_.mul(inside, a_.sub(a_.number(1, part), part)), a_.mul(inside, part)};
  }

  Arithmetic a_;
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
ValueId corners(Arithmetic& a, ValueId table, ValueId first_row, const Neighbours& y, const Neighbours& x, int64_t width, bool average) {
  const int64_t regions = a.build.shape(y.low)[0], rows = a.build.shape(y.low)[1], columns = a.build.shape(x.low)[1];
  ValueId joined = kNone;
  for (const auto& [row, row_weight] : {std::pair{y.low, y.low_weight}, {y.high, y.high_weight}}) {
    for (const auto& [column, column_weight] : {std::pair{x.low, x.low_weight}, {x.high, x.high_weight}}) {
      const ValueId line = a.times(a.add(row, first_row), static_cast<double>(width));
      const ValueId place = a.add(a.build.reshape(line, {regions, rows, 1}), a.build.reshape(column, {regions, 1, columns}));
      const ValueId weight =
          a.mul(a.build.reshape(row_weight, {regions, rows, 1, 1}), a.build.reshape(column_weight, {regions, 1, columns, 1}));
      const ValueId term = a.mul(a.build.add(OpKind::gather, {table, place}, {{Attr::axis, int64_t{0}}}), weight);
      joined = joined == kNone ? term : average ? a.add(joined, term) : a.largest(joined, term);
    }
  }
  return joined;
}

}  // namespace

void decode_roi_align(DecodeContext& c) {
  const Shape x = c.shape(0), rois = c.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4)
    throw Error(fmt::format("input {} and regions {} do not fit", to_string(x), to_string(rois)));
  const RoiRules rules = roi_rules(c);
  Arithmetic a(c.build);
  RoiAxis axis(c.build, rules);
  const auto border = [&](int64_t i) { return take_one(c.build, c.in(1), 1, i); };
  const Neighbours columns = axis.neighbours(border(0), border(2), rules.columns, x[3]);
  const Neighbours rows = axis.neighbours(border(1), border(3), rules.rows, x[2]);
  const ValueId image = c.build.reshape(c.build.cast(c.in(2), DType::i64), {rois[0], 1});
  const ValueId table = c.build.reshape(c.build.transpose(c.in(0), {0, 2, 3, 1}), {x[0] * x[2] * x[3], x[1]});
  const ValueId samples = corners(a, table, a.times(image, static_cast<double>(x[2])), rows, columns, x[3], rules.average);
  const ValueId bins = c.build.reshape(samples, {rois[0], rules.rows, rules.per_bin, rules.columns, rules.per_bin, x[1]});
  const ValueId pooled = a.reduce(rules.average ? OpKind::reduce_mean : OpKind::reduce_max, bins, {2, 4});
  c.out(0, c.build.transpose(pooled, {0, 3, 1, 2}));
}

}  // namespace zeroplan
