#pragma once
// Contiguous rows, a block for each: its threads go over the columns, in packs where all rows lie on 16-byte borders. Folds go in an order
// of the shape alone.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

struct Rows {
  int64_t count = 0, columns = 0;
  bool packs = false;
};

// Rows over the last axis of x; `bases`: where the operands with such rows begin, those left out as null.
inline Rows rows_of(const TensorView& x, std::initializer_list<const void*> bases) {
  Rows rows;
  rows.columns = x.dims[x.rank - 1];
  rows.count = 1;
  for (int d = 0; d < x.rank - 1; ++d) rows.count *= x.dims[d];
  rows.packs = rows.columns * dtype_bytes(x.dtype) % kPackBytes == 0;
  for (const void* base : bases) rows.packs = rows.packs && aligned(base);
  return rows;
}

// Threads that a row keeps busy, at least twice each.
inline unsigned row_threads(const Rows& rows, int64_t element_bytes) {
  const int64_t steps = rows.columns / (rows.packs ? kPackBytes / element_bytes : 1), half = (steps + 1) / 2;
  return static_cast<unsigned>(std::clamp<int64_t>((half + kWarp - 1) / kWarp * kWarp, kWarp, 512));
}

// kernel(rows, arguments…) with a block per row.
template <typename... P, typename... A>
inline void launch_rows(const KernelArgs& args, const Rows& rows, int64_t element_bytes, void (*kernel)(Rows, P...), A&&... arguments) {
  constexpr int64_t kMostBlocks = 1 << 20;
  if (rows.count == 0) return;
  launch(args, static_cast<unsigned>(std::min(rows.count, kMostBlocks)), row_threads(rows, element_bytes), 0, kernel, rows,
         std::forward<A>(arguments)...);
}

// kWidth columns of every row of a matrix of T, in the type that is computed in.
template <typename T, int kWidth>
struct Columns {
  using W = WideOf<T>;
  static constexpr int kCount = kWidth;
  struct Values {
    W at[kWidth];
  };
  int64_t first;
  __device__ Values load(const T* row) const {
    Values values;
    if constexpr (kWidth > 1) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(row + first);
      for (int k = 0; k < kWidth; ++k) values.at[k] = widen(pack.item[k]);
    } else {
      values.at[0] = widen(row[first]);
    }
    return values;
  }
  __device__ void store(T* row, const Values& values) const {
    if constexpr (kWidth > 1) {
      Pack<T> pack;
      for (int k = 0; k < kWidth; ++k) pack.item[k] = narrow<T>(values.at[k]);
      *reinterpret_cast<Pack<T>*>(row + first) = pack;
    } else {
      row[first] = narrow<T>(values.at[0]);
    }
  }
};

// fn(Columns) for this thread's columns.
template <typename T, typename Fn>
__device__ inline void for_columns(const Rows& rows, const Fn& fn) {
  constexpr int kPack = Pack<T>::kItems;
  const int64_t thread = threadIdx.x, threads = blockDim.x;
  if (rows.packs) {
    for (int64_t i = thread * kPack; i < rows.columns; i += threads * kPack) fn(Columns<T, kPack>{i});
  } else {
    for (int64_t i = thread; i < rows.columns; i += threads) fn(Columns<T, 1>{i});
  }
}
template <typename Fn>
__device__ inline void for_rows(const Rows& rows, const Fn& fn) {
  for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) fn(row);
}

template <typename W>
struct Sums {
  W a, b;
  __device__ Sums operator+(const Sums& other) const { return {a + other.a, b + other.b}; }
};

// The largest value so far, and Σ exp(x - largest); a row that is all -∞ has the sum 0.
template <typename W>
struct SoftmaxSum {
  W largest, sum;
  __device__ W scaled(W top) const { return largest == top ? sum : sum * exponential(largest - top); }
  __device__ SoftmaxSum operator+(const SoftmaxSum& other) const {
    const W top = largest > other.largest ? largest : other.largest;
    return {top, scaled(top) + other.scaled(top)};
  }
};

template <typename W>
__device__ inline W from_lane(W value, int other) {
  return __shfl_xor_sync(0xffffffffu, value, other);
}
template <typename W>
__device__ inline Sums<W> from_lane(const Sums<W>& value, int other) {
  return {from_lane(value.a, other), from_lane(value.b, other)};
}
template <typename W>
__device__ inline SoftmaxSum<W> from_lane(const SoftmaxSum<W>& value, int other) {
  return {from_lane(value.largest, other), from_lane(value.sum, other)};
}

// The values of all threads of the block joined by +: lanes in a tree, then warps in order. Every thread gets the result.
template <typename A>
__device__ inline A fold_block(A value) {
  __shared__ A parts[kWarp];
  for (int half = kWarp / 2; half > 0; half /= 2) value = value + from_lane(value, half);
  const int warps = static_cast<int>(blockDim.x) / kWarp, thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the fold before has been read
  if (thread % kWarp == 0) parts[thread / kWarp] = value;
  __syncthreads();
  A all = parts[0];
  for (int warp = 1; warp < warps; ++warp) all = all + parts[warp];
  return all;
}

}  // namespace zeroplan::kernels_cuda
