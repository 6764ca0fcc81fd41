#pragma once
// Loops over independent items on the threads of one rank. What an item computes never depends on the number of threads.
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// fn(i) for i in [0, count).
template <typename Fn>
void parallel_for(int threads, int64_t count, const Fn& fn) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) fn(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) fn(i);
}

// fn(worker, i): worker < threads is this thread's own index, for scratch memory.
template <typename Fn>
void parallel_for_workers(int threads, int64_t count, const Fn& fn) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) fn(0, i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) fn(omp_get_thread_num(), i);
}

// fn(begin, end) on at most `threads` ranges that cover [0, count) and begin at multiples of `grain`.
template <typename Fn>
void parallel_ranges(int threads, int64_t count, int64_t grain, const Fn& fn) {
  if (count <= 0) return;
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t pieces = std::min<int64_t>(std::max(threads, 1), grains);
  const int64_t size = (grains + pieces - 1) / pieces * grain;
  parallel_for(threads, pieces, [&](int64_t p) {
    const int64_t begin = std::min(p * size, count), end = std::min(begin + size, count);
    if (begin < end) fn(begin, end);
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
