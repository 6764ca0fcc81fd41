#include "passes/simplify/attention_mask.h"

namespace zeroplan {
namespace {

// `state(i)`: 1 kept, 0 masked, -1 neither.
template <typename State>
MaskKind classify(const HostTensor& mask, int64_t rows, int64_t columns, State state) {
  const Shape& shape = mask.shape();
  bool all_kept = true;
  for (int64_t i = 0; i < mask.count(); ++i) all_kept = all_kept && state(i) == 1;
  if (all_kept) return MaskKind::none;
  if (shape.size() < 2 || rows != columns || shape[shape.size() - 2] != rows || shape.back() != columns) return MaskKind::general;
  for (int64_t i = 0; i < mask.count(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    if (state(i) != (column <= row ? 1 : 0)) return MaskKind::general;
  }
  return MaskKind::causal;
}

}  // namespace

MaskKind classify_additive_mask(const HostTensor& mask, int64_t rows, int64_t columns) {
  return classify(mask, rows, columns, [&](int64_t i) {
    const double x = mask.get(i);
    return x == 0 ? 1 : x <= kMasked ? 0 : -1;
  });
}

MaskKind classify_keep_mask(const HostTensor& keep, bool kept_where, int64_t rows, int64_t columns) {
  return classify(keep, rows, columns, [&](int64_t i) { return (keep.get(i) != 0) == kept_where ? 1 : 0; });
}

bool keeps_some_in_each_row(const HostTensor& mask) {
  const int64_t columns = mask.shape().empty() ? 1 : mask.shape().back();
  if (columns == 0) return false;
  for (int64_t row = 0; row < mask.count() / columns; ++row) {
    bool any = false;
    for (int64_t j = 0; j < columns; ++j) any = any || mask.get(row * columns + j) > kMasked;
    if (!any) return false;
  }
  return true;
}

}  // namespace zeroplan
