#include "passes/simplify/attention_mask.h"

#include <algorithm>

namespace zeroplan {
namespace {

// `state(x)`: 1 kept, 0 masked, -1 neither. A mask has rows · columns elements for each head and layer, so that they are read as they lie.
template <typename State>
MaskKind classify(const HostTensor& mask, int64_t rows, int64_t columns, State state) {
  const Shape& shape = mask.shape();
  return visit_dtype(mask.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = mask.as<T>(), *end = x + mask.count();
    const auto kept = [&](T element) { return state(static_cast<double>(element)) == 1; };
    if (std::all_of(x, end, kept)) return MaskKind::none;
    if (shape.size() < 2 || rows != columns || shape[shape.size() - 2] != rows || shape.back() != columns) return MaskKind::general;
    for (; x < end; x += rows * columns)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          if (state(static_cast<double>(x[row * columns + column])) != (column <= row ? 1 : 0)) return MaskKind::general;
    return MaskKind::causal;
  });
}

}  // namespace

MaskKind classify_additive_mask(const HostTensor& mask, int64_t rows, int64_t columns) {
  return classify(mask, rows, columns, [](double x) { return x == 0 ? 1 : x <= kMasked ? 0 : -1; });
}

MaskKind classify_keep_mask(const HostTensor& keep, bool kept_where, int64_t rows, int64_t columns) {
  return classify(keep, rows, columns, [&](double x) { return (x != 0) == kept_where ? 1 : 0; });
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
