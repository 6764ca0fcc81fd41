// NonMaxSuppression: how many boxes are left depends on their contents, so that it takes constants alone.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/boxes.h"

namespace zeroplan {
namespace {

constexpr double kMostComparisons = 0x1p26;

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

// Stored as two corners in any order, or as centre and size.
Box box_at(const HostTensor& boxes, int64_t i, bool centred) {
  const double a = boxes.get(4 * i), b = boxes.get(4 * i + 1), c = boxes.get(4 * i + 2), d = boxes.get(4 * i + 3);
  if (centred) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width;
  return common / (a.area() + b.area() - common);
}

struct Limits {
  int64_t most = 0;
  double overlap = 0, score = 0;
  bool any_score = true, centred = false;
};

// Boxes of one image and class that are left, best first. first_box, first_score: numbers in the tensors.
std::vector<int64_t> select(const HostTensor& boxes, int64_t first_box, const HostTensor& scores, int64_t first_score, int64_t count,
                            const Limits& limits) {
  std::vector<int64_t> order(count), selected;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores.get(first_score + a) > scores.get(first_score + b); });
  for (const int64_t i : order) {
    if (static_cast<int64_t>(selected.size()) >= limits.most) break;
    if (!limits.any_score && scores.get(first_score + i) <= limits.score) break;
    const Box box = box_at(boxes, first_box + i, limits.centred);
    const bool apart = std::all_of(selected.begin(), selected.end(),
                                   [&](int64_t k) { return overlap(box, box_at(boxes, first_box + k, limits.centred)) <= limits.overlap; });
    if (apart) selected.push_back(i);
  }
  return selected;
}

}  // namespace

void decode_non_max_suppression(DecodeContext& c) {
  const HostTensor boxes = c.constant(0, "boxes, which decide the shape of its result,"),
                   scores = c.constant(1, "scores, which decide the shape of its result,");
  const Shape from = boxes.shape(), to = scores.shape();
  if (from.size() != 3 || to.size() != 3 || from[2] != 4 || from[0] != to[0] || from[1] != to[2])
    throw Error(fmt::format("boxes {} and scores {} do not fit", to_string(from), to_string(to)));
  Limits limits;
  if (c.has(2)) limits.most = c.integer(2, "limit of boxes");
  if (c.has(3)) limits.overlap = c.number(3, "iou_threshold");
  if (c.has(4)) limits.score = c.number(4, "score_threshold");
  limits.any_score = !c.has(4);
  limits.centred = c.attr_int("center_point_box", 0) != 0;
  // Each box is compared with those that are left.
  const double left = static_cast<double>(std::clamp<int64_t>(limits.most, 0, to[2]));
  if (left * static_cast<double>(scores.count()) > kMostComparisons) throw Error(fmt::format("its scores {} are too many", to_string(to)));
  std::vector<int64_t> rows;
  for (int64_t image = 0; image < (scores.count() == 0 ? 0 : to[0]); ++image)
    for (int64_t label = 0; label < to[1]; ++label)
      for (const int64_t box : select(boxes, image * to[2], scores, (image * to[1] + label) * to[2], to[2], limits))
        rows.insert(rows.end(), {image, label, box});
  c.out(0, c.build.constant(HostTensor::of(DType::i64, {static_cast<int64_t>(rows.size()) / 3, 3}, rows)));
}

}  // namespace zeroplan
