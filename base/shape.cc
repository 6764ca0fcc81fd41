#include "base/shape.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"

namespace zeroplan {

int64_t elements(const Shape& shape) {
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) throw Error(fmt::format("shape {} has a negative dimension; every dimension must be known", to_string(shape)));
    empty |= dim == 0;
  }
  if (empty) return 0;
  int64_t count = 1;
  for (int64_t dim : shape) count = checked_mul(count, dim);
  return count;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = checked_mul(stride, std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  check(shape.size() == strides.size(), "shape and strides differ in rank");
  if (elements(shape) == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // i counts from the last axis
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(
          fmt::format("shapes {} and {} do not broadcast: dimensions {} and {} differ and neither is 1", to_string(a), to_string(b), x, y));
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

int64_t normalize_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) throw Error(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += fmt::format_int(shape[i]).c_str();
  }
  return text += ']';
}

}  // namespace zeroplan
