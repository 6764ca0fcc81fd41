#include "graph/ops/cuda_conv_columns.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/ops/cuda_workspace.h"

namespace zeroplan {

namespace {

constexpr int64_t kColumnsBytes = 32 << 20;  // of a chunk, unless its least part takes more
constexpr int64_t kLeastLibrary = 1 << 20, kMostLibrary = 64 << 20;

int64_t rounded_bytes(int64_t elements, int64_t bytes) { return workspace_round(checked_mul(elements, bytes)); }

int64_t weights_of(const ConvShape& s) { return checked_mul(checked_mul(s.groups * s.out_channels, s.in_channels), s.windows.taps()); }

}  // namespace

ConvColumns conv_columns(const ConvShape& s, OpKind op, int64_t element_bytes, int64_t wide_bytes) {
  const Windows& w = s.windows;
  const bool input = op == OpKind::conv_grad_input, weight = op == OpKind::conv_grad_weight;
  const int64_t bytes = input ? wide_bytes : element_bytes, parts = input ? s.in_channels : w.out_points();
  const int64_t rows = checked_mul(s.groups, w.taps());
  // Bytes of the least part: one channel of each group, or one point.
  const int64_t least = checked_mul(checked_mul(rows, input ? w.out_points() : s.in_channels), bytes);
  const int64_t image = checked_mul(least, parts);
  ConvColumns c;
  if (s.batch == 0 || image == 0) return c;
  c.images = std::clamp<int64_t>(kColumnsBytes / image, 1, s.batch);
  c.part = c.images > 1 ? parts : std::clamp<int64_t>(kColumnsBytes / least, 1, parts);
  c.whole = c.images == s.batch && c.part == parts;
  c.columns_bytes = rounded_bytes(checked_mul(least, c.part), c.images);
  int64_t results = s.groups * s.out_channels * c.part;
  if (input) results = rows * c.part * w.out_points();
  if (weight) {
    results = weights_of(s);
    if (c.images > 1) c.dy_bytes = rounded_bytes(checked_mul(s.groups * s.out_channels * c.images, c.part), element_bytes);
    if (!c.whole) c.sum_bytes = rounded_bytes(results, wide_bytes);
  }
  c.product_bytes = cuda_matmul_workspace(checked_mul(results, weight ? 1 : c.images));
  return c;
}

int64_t cuda_conv_library_workspace(const ConvShape& s, int64_t element_bytes) {
  const int64_t points = checked_mul(s.groups * s.in_channels, s.windows.in_points()),
                results = checked_mul(s.groups * s.out_channels, s.windows.out_points());
  const int64_t elements = checked_add(checked_mul(s.batch, checked_add(points, results)), weights_of(s));
  return std::clamp(rounded_bytes(elements, 2 * element_bytes), kLeastLibrary, kMostLibrary);
}

int64_t cuda_conv_workspace(const ConvShape& s, OpKind op, int64_t element_bytes, int64_t wide_bytes) {
  return std::max(conv_columns(s, op, element_bytes, wide_bytes).total(), cuda_conv_library_workspace(s, element_bytes));
}

}  // namespace zeroplan
