#pragma once
// Small transposes: between planes (one channel after the other) and points (all channels of a point together).
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// to[j][i] = from[i][j] for 4 × 4 elements.
inline void transpose_four(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_ld), c = _mm_loadu_ps(from + 2 * from_ld),
         d = _mm_loadu_ps(from + 3 * from_ld);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_ld, b);
  _mm_storeu_ps(to + 2 * to_ld, c);
  _mm_storeu_ps(to + 3 * to_ld, d);
}
inline void transpose_four(const double* from, int64_t from_ld, double* to, int64_t to_ld) {
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i) to[j * to_ld + i] = from[i * from_ld + j];
}

// Fewer than four rows or columns.
template <typename T>
inline void transpose_narrow(const T* from, int64_t from_ld, int64_t rows, int64_t columns, T* to, int64_t to_ld) {
  if (rows == 1 && to_ld == 1) {
    std::copy_n(from, columns, to);
  } else if (columns == 1 && from_ld == 1) {
    std::copy_n(from, rows, to);
  } else {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) to[j * to_ld + i] = from[i * from_ld + j];
  }
}

// to[j·to_ld + i] = from[i·from_ld + j] for i < rows, j < columns. The last four of an extent overlap those before them.
template <typename T>
void transpose_tile(const T* from, int64_t from_ld, int64_t rows, int64_t columns, T* to, int64_t to_ld) {
  constexpr int64_t kBlock = 16;
  if (rows < 4 || columns < 4) return transpose_narrow(from, from_ld, rows, columns, to, to_ld);
  for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
    const int64_t j1 = std::min(columns, j0 + kBlock);
    for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
      const int64_t i1 = std::min(rows, i0 + kBlock);
      for (int64_t i = i0; i < i1; i += 4) {
        const int64_t row = std::min(i, rows - 4);
        for (int64_t j = j0; j < j1; j += 4) {
          const int64_t column = std::min(j, columns - 4);
          transpose_four(from + row * from_ld + column, from_ld, to + column * to_ld + row, to_ld);
        }
      }
    }
  }
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
