#pragma once
// Products of matrices that fit the first caches, for the tiles of attention. Sums run over k in order, whatever the instruction set.
#include "kernels/cpu/vector.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// a [m, k] with any strides, b [k, n] and c [m, n] with contiguous rows.
template <typename T>
struct TileOperands {
  const T* a;
  int64_t a_row, a_column;
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
};

// Rows × vectors of c kept in registers at once.
template <typename T>
struct MicroTile {
  static constexpr int kRegistersPerVec = static_cast<int>(sizeof(T)) * kLanes / kRegisterBytes;
  static constexpr bool kManyRegisters = kRegisterBytes == 64;  // 32 of them, else 16
  static constexpr int kVectors = kManyRegisters ? 4 / kRegistersPerVec : 1;
  static constexpr int kRows = kManyRegisters || kRegistersPerVec <= 2 ? 6 : kRegistersPerVec == 4 ? 2 : 1;
};

template <typename T, int R, int N>
ZP_INLINE void micro_product(const TileOperands<T>& t, int64_t k, bool accumulate) {
  Vec<T> c[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) c[r][v] = accumulate ? Vec<T>::load(t.c + r * t.c_row + v * kLanes) : Vec<T>(T(0));
  }
  const T* a = t.a;
  const T* b = t.b;
  for (int64_t i = 0; i < k; ++i, a += t.a_column, b += t.b_row) {
    Vec<T> row[N];
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) row[v] = Vec<T>::load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec<T> x(a[r * t.a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) c[r][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) c[r][v].store(t.c + r * t.c_row + v * kLanes);
  }
}

// All rows of N vectors of columns.
template <typename T, int N>
void product_columns(TileOperands<T> t, int64_t m, int64_t k, bool accumulate) {
  constexpr int R = MicroTile<T>::kRows;
  const auto advance = [&](int64_t rows) {
    t.a += rows * t.a_row;
    t.c += rows * t.c_row;
  };
  int64_t left = m;
  for (; left >= R; left -= R, advance(R)) micro_product<T, R, N>(t, k, accumulate);
  if constexpr (R > 4) {
    if (left >= 4) micro_product<T, 4, N>(t, k, accumulate), left -= 4, advance(4);
  }
  if constexpr (R > 2) {
    if (left >= 2) micro_product<T, 2, N>(t, k, accumulate), left -= 2, advance(2);
  }
  for (; left > 0; --left, advance(1)) micro_product<T, 1, N>(t, k, accumulate);
}

// The last n < 16 columns.
template <typename T>
void product_tail(const TileOperands<T>& t, int64_t m, int64_t n, int64_t k, bool accumulate) {
  for (int64_t r = 0; r < m; ++r) {
    T* c = t.c + r * t.c_row;
    T sums[kLanes] = {};
    for (int64_t j = 0; j < n && accumulate; ++j) sums[j] = c[j];
    for (int64_t i = 0; i < k; ++i) {
      const T x = t.a[r * t.a_row + i * t.a_column];
      for (int64_t j = 0; j < n; ++j) sums[j] += x * t.b[i * t.b_row + j];
    }
    for (int64_t j = 0; j < n; ++j) c[j] = sums[j];
  }
}

// c = a · b, or c += a · b.
template <typename T>
void tile_product(TileOperands<T> t, int64_t m, int64_t n, int64_t k, bool accumulate) {
  constexpr int N = MicroTile<T>::kVectors;
  const auto advance = [&](int64_t columns) {
    t.b += columns;
    t.c += columns;
  };
  for (; n >= N * kLanes; n -= N * kLanes, advance(N * kLanes)) product_columns<T, N>(t, m, k, accumulate);
  for (; n >= kLanes; n -= kLanes, advance(kLanes)) product_columns<T, 1>(t, m, k, accumulate);
  if (n > 0) product_tail(t, m, n, k, accumulate);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
