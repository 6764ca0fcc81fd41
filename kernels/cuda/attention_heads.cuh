#pragma once
// Operands of attention and its gradient: heads as matrices, read four columns at a time.
#include "base/tensor_view.h"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

inline constexpr int kQuad = 4;

// Calls fn with a zero of the storage type, one that is computed in as W. A branch that all threads take alike.
template <typename W, typename Fn>
__device__ inline void visit_stored_as(DType dtype, const Fn& fn) {
  if constexpr (sizeof(W) == sizeof(double))
    fn(double{});
  else if (dtype == DType::f16)
    fn(__half{});
  else if (dtype == DType::bf16)
    fn(__nv_bfloat16{});
  else
    fn(float{});
}

// [rows, depth] of one head; rows are `ld` elements apart.
struct HeadMatrix {
  char* data;
  DType dtype;
  bool quads;  // four neighbours of a row, from a multiple of four on, may be moved at once
  int64_t ld, rows, depth;
};

// All heads of an operand [B, H, rows, D].
struct Heads {
  HeadMatrix first;
  int64_t batch_stride, head_stride;  // bytes
  __device__ HeadMatrix at(int64_t batch, int64_t head) const {
    HeadMatrix own = first;
    own.data += batch * batch_stride + head * head_stride;
    return own;
  }
};
inline Heads heads_of(const TensorView& x) {
  const int64_t size = dtype_bytes(x.dtype), bytes = std::min<int64_t>(size * kQuad, 16);
  const bool quads = reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(bytes) == 0 && x.strides[0] % kQuad == 0 &&
                     x.strides[1] % kQuad == 0 && x.strides[2] % kQuad == 0;
  return {{static_cast<char*>(x.data), x.dtype, quads, x.strides[2], x.dims[2], x.dims[3]}, x.strides[0] * size, x.strides[1] * size};
}

template <typename T>
struct alignas(sizeof(T) * kQuad > 16 ? 16 : sizeof(T) * kQuad) Quad {
  T at[kQuad];
};

// Elements [column, column + 4) of a row; zeros beyond the matrix.
template <typename W>
__device__ inline Quad<W> load_quad(const HeadMatrix& x, int64_t row, int64_t column) {
  Quad<W> quad = {};
  if (row >= x.rows) return quad;
  visit_stored_as<W>(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = reinterpret_cast<const T*>(x.data) + row * x.ld + column;
    if (x.quads && column + kQuad <= x.depth) {
      const Quad<T> stored = *reinterpret_cast<const Quad<T>*>(from);
      for (int k = 0; k < kQuad; ++k) quad.at[k] = widen(stored.at[k]);
    } else {
      for (int k = 0; k < kQuad; ++k)
        if (column + k < x.depth) quad.at[k] = widen(from[k]);
    }
  });
  return quad;
}
template <typename W>
__device__ inline void store_quad(const HeadMatrix& x, int64_t row, int64_t column, const W* values) {
  if (row >= x.rows) return;
  visit_stored_as<W>(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = reinterpret_cast<T*>(x.data) + row * x.ld + column;
    if (x.quads && column + kQuad <= x.depth) {
      Quad<T> stored;
      for (int k = 0; k < kQuad; ++k) stored.at[k] = narrow<T>(values[k]);
      *reinterpret_cast<Quad<T>*>(to) = stored;
    } else {
      for (int k = 0; k < kQuad; ++k)
        if (column + k < x.depth) to[k] = narrow<T>(values[k]);
    }
  });
}

}  // namespace zeroplan::kernels_cuda
