#include "base/tensor_view.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

TensorView make_view(void* data, DType dtype, const Shape& shape, const Strides& strides) {
  check(shape.size() == strides.size(), "shape and strides differ in rank");
  if (shape.size() > kMaxRank)
    throw Error(fmt::format("shape {} has rank {}; at most {} is supported", to_string(shape), shape.size(), kMaxRank));
  TensorView view{data, dtype, static_cast<int>(shape.size())};
  for (size_t i = 0; i < shape.size(); ++i) {
    view.dims[i] = shape[i];
    view.strides[i] = strides[i];
  }
  return view;
}

TensorView make_view(void* data, DType dtype, const Shape& shape) { return make_view(data, dtype, shape, contiguous_strides(shape)); }

}  // namespace zeroplan
