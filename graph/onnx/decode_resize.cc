// Resize: axis by axis, with tables of places and weights that are known at import.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/decimal.h"
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/resize_table.h"
#include "graph/onnx/take.h"
#include "graph/onnx/unroll_limit.h"

namespace zeroplan {
namespace {

constexpr int64_t kProductRows = 256;    // largest axis that a matrix product resizes faster than picking does, where it is the last one,
constexpr int64_t kProductColumns = 64;  // and where it is not

struct ResizePlan {
  ResizeRules rules;
  std::vector<int64_t> axes;
  std::vector<ResizeAxis> along;
  double extrapolation = 0;
};

std::vector<double> decimals(const DecodeContext& c, int i, const char* what) {
  const HostTensor& tensor = c.constant(i, what);
  std::vector<double> values;
  for (int64_t k = 0; k < tensor.count(); ++k) values.push_back(meant_decimal(tensor.get(k)));
  return values;
}

bool given(const DecodeContext& c, int i) { return c.has(i) && elements(c.shape(i)) > 0; }

ResizeRules rules_of(const DecodeContext& c) {
  ResizeRules r;
  r.mode = c.attr_string("mode", "nearest");
  r.coordinates = c.attr_string("coordinate_transformation_mode", "half_pixel");
  r.nearest = c.attr_string("nearest_mode", "round_prefer_floor");
  r.cubic_a = c.attr_float("cubic_coeff_a", -0.75);
  r.exclude_outside = c.attr_int("exclude_outside", 0) != 0;
  r.antialias = c.attr_int("antialias", 0) != 0;
  return r;
}

// Sizes as ONNX infers them: in single precision, cut off.
void set_scales(ResizePlan& plan, const std::vector<double>& scales) {
  for (size_t i = 0; i < plan.along.size(); ++i) {
    ResizeAxis& axis = plan.along[i];
    if (!(scales[i] > 0) || !std::isfinite(scales[i])) throw Error(fmt::format("scale {} is not positive", scales[i]));
    axis.scale = scales[i];
    axis.to = checked_int(std::floor(static_cast<float>(axis.size) * static_cast<float>(scales[i])));
  }
}

void set_sizes(ResizePlan& plan, const std::vector<int64_t>& sizes, const std::string& policy) {
  std::vector<double> scales;
  for (size_t i = 0; i < plan.along.size(); ++i) {
    if (sizes[i] < 0) throw Error("a size is negative");
    plan.along[i].to = sizes[i];
    plan.along[i].scale = plan.along[i].size == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(plan.along[i].size);
    scales.push_back(plan.along[i].scale);
  }
  if (policy == "stretch" || scales.empty()) return;
  if (policy != "not_larger" && policy != "not_smaller") throw Error(fmt::format("keep_aspect_ratio_policy '{}' is unknown", policy));
  const double scale =
      policy == "not_larger" ? *std::min_element(scales.begin(), scales.end()) : *std::max_element(scales.begin(), scales.end());
  for (ResizeAxis& axis : plan.along) {
    axis.scale = scale;
    axis.to = checked_int(std::floor(scale * static_cast<double>(axis.size) + 0.5));
  }
}

ResizePlan plan_resize(const DecodeContext& c) {
  ResizePlan plan;
  plan.rules = rules_of(c);
  plan.extrapolation = c.attr_float("extrapolation_value", 0);
  plan.axes = c.attr_ints("axes");
  if (plan.axes.empty()) {
    plan.axes.resize(c.rank(0));
    std::iota(plan.axes.begin(), plan.axes.end(), 0);
  }
  const size_t count = plan.axes.size();
  std::vector<bool> seen(c.rank(0), false);
  for (int64_t& axis : plan.axes) {
    axis = normalize_axis(axis, c.rank(0));
    if (seen[axis]) throw Error(fmt::format("axis {} is resized twice", axis));
    seen[axis] = true;
    plan.along.push_back({c.shape(0)[axis]});
  }
  if (given(c, 2) == given(c, 3)) throw Error("it needs either scales or sizes");
  if (elements(c.shape(given(c, 2) ? 2 : 3)) != static_cast<int64_t>(count)) throw Error("scales or sizes do not have one entry per axis");
  if (given(c, 2))
    set_scales(plan, decimals(c, 2, "scales"));
  else
    set_sizes(plan, c.ints(3, "sizes"), c.attr_string("keep_aspect_ratio_policy", "stretch"));
  if (plan.rules.coordinates != "tf_crop_and_resize") return plan;
  if (!given(c, 1)) throw Error("tf_crop_and_resize needs a roi");
  const std::vector<double> roi = decimals(c, 1, "roi");
  if (roi.size() != 2 * count) throw Error(fmt::format("its roi has {} numbers for {} axes", roi.size(), count));
  for (size_t i = 0; i < count; ++i) plan.along[i].start = roi[i], plan.along[i].end = roi[count + i];
  return plan;
}

// weights [to] along `axis`, in the rank of x.
Term weights_along(Term x, int64_t axis, const std::vector<double>& weights) {
  Shape shape(x.shape().size(), 1);
  shape[axis] = static_cast<int64_t>(weights.size());
  return {x.build(), x.build().constant(HostTensor::of(x.dtype(), shape, weights))};
}

Term sum_of_taps(Term x, int64_t axis, const ResizeTable& table) {
  std::optional<Term> sum;
  const UnrollLimit limit(x.build());
  for (size_t k = 0; k < table.places.size(); ++k) {
    limit.check(static_cast<int64_t>(k), static_cast<int64_t>(table.places.size()));
    Term term = take(x, axis, table.places[k]);
    if (!table.weights.empty()) term = term * weights_along(x, axis, table.weights[k]);
    sum = sum ? *sum + term : term;
  }
  return *sum;
}

// matrix [to, size]: x seen as [lead…, size, behind], or with the axis last.
Term product_with_weights(Term x, int64_t axis, const ResizeTable& table) {
  Shape shape = x.shape();
  const int64_t size = shape[axis], to = static_cast<int64_t>(table.places[0].size());
  const bool last = axis + 1 == static_cast<int64_t>(shape.size());
  HostTensor matrix = x.build().table(x.dtype(), last ? Shape{size, to} : Shape{to, size});
  std::vector<double> sums(matrix.count(), 0);
  for (size_t k = 0; k < table.places.size(); ++k)
    for (int64_t i = 0; i < to; ++i) {
      const int64_t at = last ? table.places[k][i] * to + i : i * size + table.places[k][i];
      sums[at] += table.weights[k][i];
    }
  for (int64_t i = 0; i < matrix.count(); ++i) matrix.set(i, sums[i]);
  const Term weights(x.build(), x.build().constant(std::move(matrix)));
  if (last) return matmul(x, weights);
  Shape flat(shape.begin(), shape.begin() + axis + 1);
  flat.push_back(elements(Shape(shape.begin() + axis + 1, shape.end())));
  shape[axis] = to;
  return matmul(weights, x.reshape(flat)).reshape(shape);
}

Term resize_axis(Term x, int64_t axis, const ResizeTable& table) {
  const bool product = !table.weights.empty() && x.shape()[axis] <= (axis + 1 == x.rank() ? kProductRows : kProductColumns);
  return product ? product_with_weights(x, axis, table) : sum_of_taps(x, axis, table);
}

// Results outside the region get the value; a mask per axis, as they are lines of the result.
Term extrapolate(Term y, int64_t axis, const ResizeTable& table, double value) {
  if (std::none_of(table.outside.begin(), table.outside.end(), [](bool outside) { return outside; })) return y;
  Shape shape(y.shape().size(), 1);
  shape[axis] = static_cast<int64_t>(table.outside.size());
  const std::vector<int> mask(table.outside.begin(), table.outside.end());
  return where({y.build(), y.build().constant(HostTensor::of(DType::boolean, shape, mask))}, value, y);
}

bool changes(const ResizeAxis& axis) { return axis.to != axis.size || axis.scale != 1 || axis.start != 0 || axis.end != 1; }

Term resize(Term x, const ResizePlan& plan) {
  if (plan.rules.mode != "nearest" && !is_floating(x.dtype()))
    throw Error(fmt::format("mode '{}' needs a floating-point input; insert a Cast in front of it", plan.rules.mode));
  for (size_t i = 0; i < plan.axes.size(); ++i)
    if (changes(plan.along[i])) x = resize_axis(x, plan.axes[i], resize_table(plan.rules, plan.along[i]));
  for (size_t i = 0; i < plan.axes.size(); ++i)
    if (changes(plan.along[i])) x = extrapolate(x, plan.axes[i], resize_table(plan.rules, plan.along[i]), plan.extrapolation);
  return x;
}

void decode_resize(DecodeContext& c) { result(c, resize(term(c, 0), plan_resize(c))); }

}  // namespace

void add_resize_decoders(DecoderTable& t) { t["Resize"] = {decode_resize, gradient_to({0})}; }

}  // namespace zeroplan
