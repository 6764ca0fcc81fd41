#include "graph/ops/output_layout.h"

#include <algorithm>

namespace zeroplan {
namespace {

// Every element of one stretch of memory exactly once.
bool is_dense(const Shape& shape, const Strides& strides) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // (stride, size)
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.emplace_back(strides[i], shape[i]);
  std::sort(axes.begin(), axes.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : axes) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

}  // namespace

bool writes_layout(OpKind op, int output, const Shape& shape, const Strides& strides) {
  if (strides.size() != shape.size()) return false;
  if (is_contiguous(shape, strides)) return true;
  const bool free_axes = (op == OpKind::attention && output == 0) || op == OpKind::attention_grad;
  return free_axes && !shape.empty() && strides.back() == 1 && is_dense(shape, strides);
}

}  // namespace zeroplan
