#include "graph/onnx/resize_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/limits.h"

namespace zeroplan {
namespace {

// Where result i lies in the original, in elements.
double original_place(const ResizeRules& rules, const ResizeAxis& axis, int64_t i) {
  const double x = static_cast<double>(i), size = static_cast<double>(axis.size), to = static_cast<double>(axis.to);
  const std::string& mode = rules.coordinates;
  if (mode == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return axis.to == 1 ? 0 : x * (size - 1) / (to - 1);
  if (mode == "pytorch_half_pixel") return axis.to == 1 ? 0 : (x + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = to / (axis.scale * size);
    return size / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double span = (axis.end - axis.start) * (size - 1);
    return axis.start * (size - 1) + (axis.to == 1 ? span / 2 : x * span / (to - 1));
  }
  throw Error(fmt::format("coordinate_transformation_mode '{}' is unknown", mode));
}

double nearest_place(const std::string& mode, double x) {
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  throw Error(fmt::format("nearest_mode '{}' is unknown", mode));
}

// Keys' cubic convolution kernel.
double cubic_weight(double a, double x) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double weight(const ResizeRules& rules, double distance) {
  return rules.mode == "linear" ? std::max(0.0, 1 - std::abs(distance)) : cubic_weight(rules.cubic_a, distance);
}

// Half the number of elements that a result is made of.
int64_t reach(const ResizeRules& rules, double stretch) {
  return checked_int(std::ceil((rules.mode == "linear" ? 1 : 2) / stretch - 1e-9));
}

int64_t inside(int64_t place, int64_t size) { return std::clamp<int64_t>(place, 0, size - 1); }

// A whole number; what the file's scales and regions make of it may be anything.
int64_t whole(double place) {
  constexpr double kFar = 0x1p52;
  return std::isnan(place) ? 0 : static_cast<int64_t>(std::clamp(place, -kFar, kFar));
}

// What the lists of a table take is up to the file.
void check_taps(int64_t taps, int64_t results) {
  if (checked_mul(taps, results) > kMaxFoldedBytes / 64)
    throw Error(fmt::format("an axis of {} elements that are each made of {} is not supported", results, taps));
}

void fill_weights(const ResizeRules& rules, const ResizeAxis& axis, ResizeTable& table) {
  const double stretch = rules.antialias ? std::min(axis.scale, 1.0) : 1;
  const int64_t half = reach(rules, stretch), taps = checked_mul(2, half);
  check_taps(taps, axis.to);
  table.places.assign(taps, std::vector<int64_t>(axis.to));
  table.weights.assign(taps, std::vector<double>(axis.to));
  for (int64_t i = 0; i < axis.to; ++i) {
    const double x = original_place(rules, axis, i);
    const int64_t first = whole(std::floor(x)) - half + 1;
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const bool left_out = rules.exclude_outside && inside(first + k, axis.size) != first + k;
      table.places[k][i] = inside(first + k, axis.size);
      table.weights[k][i] = left_out ? 0 : weight(rules, (static_cast<double>(first + k) - x) * stretch);
      sum += table.weights[k][i];
    }
    if (sum != 0 && (rules.exclude_outside || rules.antialias))
      for (auto& tap : table.weights) tap[i] /= sum;
  }
}

// Takes away the taps that weigh nothing anywhere, but for one.
void drop_idle_taps(ResizeTable& table) {
  const auto idle = [](const std::vector<double>& tap) { return std::all_of(tap.begin(), tap.end(), [](double w) { return w == 0; }); };
  size_t kept = 0;
  for (size_t k = 0; k < table.weights.size(); ++k) {
    const bool last = k + 1 == table.weights.size();
    if (idle(table.weights[k]) && !(last && kept == 0)) continue;
    if (kept != k) {
      table.weights[kept] = std::move(table.weights[k]);
      table.places[kept] = std::move(table.places[k]);
    }
    ++kept;
  }
  table.weights.resize(kept);
  table.places.resize(kept);
}

}  // namespace

ResizeTable resize_table(const ResizeRules& rules, const ResizeAxis& axis) {
  ResizeTable table;
  if (axis.size == 0 && axis.to > 0) throw Error("an axis without elements cannot grow");
  if (axis.to == 0) {
    table.places.emplace_back();
    return table;
  }
  check_taps(1, axis.to);
  for (int64_t i = 0; i < axis.to; ++i) {
    const double x = original_place(rules, axis, i), last = static_cast<double>(axis.size - 1);
    table.outside.push_back(rules.coordinates == "tf_crop_and_resize" && (x < 0 || x > last));
  }
  if (rules.mode == "nearest") {
    if (rules.antialias) throw Error("antialias has no meaning with mode 'nearest'");
    table.places.emplace_back();
    for (int64_t i = 0; i < axis.to; ++i)
      table.places[0].push_back(inside(whole(nearest_place(rules.nearest, original_place(rules, axis, i))), axis.size));
    return table;
  }
  if (rules.mode != "linear" && rules.mode != "cubic") throw Error(fmt::format("mode '{}' is unknown", rules.mode));
  fill_weights(rules, axis, table);
  drop_idle_taps(table);
  return table;
}

}  // namespace zeroplan
