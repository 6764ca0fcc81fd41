#pragma once
// A typed, strided window on memory that somebody else owns; cheap to copy, no allocation.
#include <cstdint>

#include "base/dtype.h"
#include "base/shape.h"

namespace zeroplan {

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // elements

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] != 1 && strides[i] != expected) return false;
      expected *= dims[i];
    }
    return true;
  }
};

TensorView make_view(void* data, DType dtype, const Shape& shape, const Strides& strides);
TensorView make_view(void* data, DType dtype, const Shape& shape);  // contiguous

}  // namespace zeroplan
