#pragma once
// What Resize does along one axis, known at import: which elements each result is made of, and with what weights.
#include <cstdint>
#include <string>
#include <vector>

namespace zeroplan {

struct ResizeRules {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
};

// From `size` elements to `to`, which is about scale · size. start, end: the region that tf_crop_and_resize takes, as parts of the axis.
struct ResizeAxis {
  int64_t size = 0, to = 0;
  double scale = 1, start = 0, end = 1;
};

// places[k][i], weights[k][i]: result i is the sum over k of element places[k][i] times weights[k][i]. Without weights: nearest, one k.
struct ResizeTable {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;
  std::vector<bool> outside;  // tf_crop_and_resize: results that get the extrapolation value
};

ResizeTable resize_table(const ResizeRules& rules, const ResizeAxis& axis);  // throws Error on an unknown mode

}  // namespace zeroplan
