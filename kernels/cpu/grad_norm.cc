// grad_norm: Σ (g / W)² over a shard, exact beyond blocks of 64 elements, so that it does not depend on ranks, units or threads.
// The accumulator: pieces of 32 bits in integers, as in reproducible summation (Demmel and Nguyen; Kulisch's long accumulator).
#include <atomic>
#include <cmath>

#include "kernels/cpu/extents.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "runtime/plan/report.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kBlocksPerItem = 1024;

// Σ (g / W)² of up to 64 elements: 16 lanes in order, then a fixed tree, in double.
template <typename T>
double block_sum(const T* g, int64_t n, double weight) {
  Vec<double> sum(0.0);
  const Vec<double> w(weight);
  for_lanes<T>(n, [&](auto at) ZP_LAMBDA {
    const Vec<double> x = to_double(at.load(g)) / w;
    sum += x * x;
  });
  return sum_lanes(sum);
}

// limbs += value, exactly. A value that is not finite goes into the highest limb, which no finite sum reaches.
void add_exactly(int64_t* limbs, double value) {
  if (!std::isfinite(value)) {
    limbs[kNormLimbs - 1] += 1;
    return;
  }
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction · 2^exponent, fraction in [½, 1)
  if (fraction == 0) return;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int position = exponent - 53 - kNormLowestExponent;
  const unsigned __int128 shifted = static_cast<unsigned __int128>(mantissa) << (position % 32);
  int64_t* limb = limbs + position / 32;
  for (int i = 0; i < 3; ++i) limb[i] += static_cast<int64_t>(static_cast<uint64_t>(shifted >> (32 * i)) & 0xffffffff);
}

template <typename T>
void add_blocks(const T* g, int64_t n, double weight, int64_t* limbs) {
  for (int64_t i = 0; i < n; i += kNormBlock) add_exactly(limbs, block_sum(g + i, std::min(kNormBlock, n - i), weight));
}

// Integer additions commute: threads add into the shared limbs in any order.
void merge(int64_t* limbs, const int64_t* own) {
  for (int i = 0; i < kNormLimbs; ++i) {
    if (own[i] != 0) std::atomic_ref<int64_t>(limbs[i]).fetch_add(own[i], std::memory_order_relaxed);
  }
}

}  // namespace

// gradient shard, report, limbs → limbs' (in place)
void grad_norm_kernel(const KernelArgs& args) {
  const double weight = static_cast<const double*>(args.inputs[1].data)[kReportWeight];
  if (weight == 0) return;  // an empty window: nothing was accumulated
  int64_t* limbs = static_cast<int64_t*>(args.outputs[0].data);
  visit_floating(args.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* gradient = static_cast<const T*>(args.inputs[0].data);
    for_extents(*args.unit, [&](int64_t first, int64_t count, const UnitExtent&) {
      parallel_ranges(args.threads, count, kBlocksPerItem * kNormBlock, [&](int64_t begin, int64_t end) {
        int64_t own[kNormLimbs] = {};
        add_blocks(gradient + first + begin, end - begin, weight, own);
        merge(limbs, own);
      });
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
