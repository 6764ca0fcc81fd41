// cumsum, arg_max: along one axis of a contiguous operand.
#include "kernels/cuda/along_axis.cuh"

#include "graph/ops/cuda_reduce_chunks.h"
#include "kernels/cuda/launch.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kItems = 4;  // neighbours that a thread adds up before the block does
constexpr int kTile = kBlock * kItems;
constexpr int64_t kShort = 32;  // lines of at most that many elements are one thread's work

// Sums of floating-point numbers move on in double, those of integers wrap.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

// Sums up to and with each thread's number, at sums[thread] when all have returned.
template <typename Sum>
__device__ void scan_block(Sum own, Sum* sums, Sum* spare) {
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = own;
  for (int step = 1; step < kBlock; step *= 2) {
    __syncthreads();
    spare[thread] = thread >= step ? sums[thread - step] + sums[thread] : sums[thread];
    Sum* const next = spare;
    spare = sums;
    sums = next;
  }
  __syncthreads();
}

// x, y [lines, size]: a block per line. 2^8 threads: after eight steps of the scan the sums are in the first array again.
template <typename T>
__global__ void sum_rows(int64_t lines, int64_t size, bool exclusive, bool reverse, const T* x, T* y) {
  using Sum = SumOf<T>;
  static_assert(kBlock == 256);
  __shared__ Sum sums[kBlock], spare[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    const int64_t first = line * size;
    Sum carry = 0;
    for (int64_t base = 0; base < size; base += kTile) {
      Sum items[kItems], own = 0;
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = base + thread * kItems + k;
        items[k] = i < size ? static_cast<Sum>(widen(x[first + (reverse ? size - 1 - i : i)])) : Sum(0);
        own += items[k];
      }
      scan_block(own, sums, spare);
      Sum sum = carry + (thread > 0 ? sums[thread - 1] : Sum(0));
      carry += sums[kBlock - 1];
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = base + thread * kItems + k;
        const Sum before = sum;
        sum += items[k];
        if (i < size) y[first + (reverse ? size - 1 - i : i)] = narrow<T>(exclusive ? before : sum);
      }
      __syncthreads();
    }
  }
}

// x, y [outer, size, inner]: a thread per line, neighbours side by side.
template <typename T>
__global__ void sum_columns(int64_t lines, const AlongAxis a, bool exclusive, bool reverse, const T* x, T* y) {
  for_items(lines, [&](int64_t line) {
    const int64_t first = a.first(line);
    SumOf<T> sum = 0;
    for (int64_t i = 0; i < a.size; ++i) {
      const int64_t at = first + (reverse ? a.size - 1 - i : i) * a.inner;
      const SumOf<T> before = sum;
      sum += static_cast<SumOf<T>>(widen(x[at]));
      y[at] = narrow<T>(exclusive ? before : sum);
    }
  });
}

template <typename T>
struct Best {
  T value;
  int64_t place;  // along the axis; -1: none yet
};

// Of equal ones the first, or the last.
template <typename T>
__device__ Best<T> better(const Best<T>& a, const Best<T>& b, bool select_last) {
  if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
  if (above(a.value, b.value)) return a;
  if (above(b.value, a.value)) return b;
  return (a.place > b.place) == select_last ? a : b;
}

// x [outer, size, inner] of `dtype`, y [outer, inner]. `lanes` threads per line.
template <typename T>
__global__ void find_largest(const AlongAxis a, int lanes, bool select_last, DType dtype, const void* x, int64_t* y) {
  __shared__ T values[kBlock];
  __shared__ int64_t places[kBlock];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % lanes, lines = kBlock / lanes;
  const int64_t line = int64_t{blockIdx.x} * lines + thread / lanes;
  Best<T> best = {T(0), -1};
  if (line < a.lines()) {
    const int64_t first = a.first(line);
    for (int64_t i = lane; i < a.size; i += lanes) best = better(best, {load_as<T>(x, dtype, first + i * a.inner), i}, select_last);
  }
  values[thread] = best.value;
  places[thread] = best.place;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    best = better(best, {values[thread + half], places[thread + half]}, select_last);
    values[thread] = best.value;
    places[thread] = best.place;
  }
  if (lane == 0 && line < a.lines()) y[line] = best.place;
}

bool flag(const KernelArgs& args, Attr key) { return args.attributes->get_int(key, 0) != 0; }

}  // namespace

void cumsum_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const AlongAxis a(x, args.attributes->get_int(Attr::axis));
  const bool exclusive = flag(args, Attr::exclusive), reverse = flag(args, Attr::reverse);
  if (x.elements() == 0) return;
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.as<T>();
    T* to = y.as<T>();
    if (a.inner > 1 || a.size <= kShort) return launch_over(args, a.lines(), sum_columns<T>, a, exclusive, reverse, from, to);
    launch(args, blocks_for(args, a.outer, 1), kBlock, 0, sum_rows<T>, a.outer, a.size, exclusive, reverse, from, to);
  };
  if (x.dtype == DType::i32) return run(int32_t{});
  if (x.dtype == DType::i64) return run(int64_t{});
  visit_floating(x.dtype, run);
}

void arg_max_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const AlongAxis a(x, args.attributes->get_int(Attr::axis));
  if (a.lines() == 0) return;
  const int lanes = a.inner > 1 ? 1 : static_cast<int>(reduce_chunks(a.outer, a.size, false).lanes);
  const int64_t lines = kBlock / lanes;
  visit_ordered(x.dtype, [&](auto zero) {
    launch(args, static_cast<unsigned>((a.lines() + lines - 1) / lines), kBlock, 0, find_largest<decltype(zero)>, a, lanes,
           flag(args, Attr::select_last), x.dtype, static_cast<const void*>(x.data), y.as<int64_t>());
  });
}

}  // namespace zeroplan::kernels_cuda
