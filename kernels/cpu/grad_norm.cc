// grad_norm: Σ (g / W)² over a shard, exact beyond blocks of 64 elements, so that it does not depend on ranks, units or threads.
#include <atomic>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/scalar/extents.h"
#include "kernels/scalar/norm_limbs.h"

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

// Returns how many blocks are not finite.
template <typename T>
int64_t add_blocks(const T* g, int64_t n, double weight, int64_t* limbs) {
  for (int64_t i = 0; i < n; i += kNormBlock) {
    const double sum = block_sum(g + i, std::min(kNormBlock, n - i), weight);
    add_exactly(sum, [limbs](int limb, int64_t piece) { limbs[limb] += piece; });
  }
  return limbs[kNormLimbs - 1];
}

void add_to(int64_t& limb, int64_t piece) { std::atomic_ref<int64_t>(limb).fetch_add(piece, std::memory_order_relaxed); }

// Integer additions commute: threads add into the shared limbs in any order.
void merge(int64_t* limbs, const int64_t* own) {
  for (int i = 0; i < kNormLimbs; ++i)
    if (own[i] != 0) add_to(limbs[i], own[i]);
}

}  // namespace

// gradient shard, report, limbs → limbs' (in place). starts: for each parameter of the unit the limb that counts its blocks that are not
// finite.
void grad_norm_kernel(const KernelArgs& args) {
  const double weight = static_cast<const double*>(args.inputs[1].data)[kReportWeight];
  if (weight == 0) return;  // an empty window: nothing was accumulated
  int64_t* limbs = static_cast<int64_t*>(args.outputs[0].data);
  const int64_t* counters = args.attributes->has(Attr::starts) ? args.attributes->get_ints(Attr::starts).data() : nullptr;
  visit_floating(args.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* gradient = static_cast<const T*>(args.inputs[0].data);
    for_extents(*args.unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
      parallel_ranges(args.threads, count, kBlocksPerItem * kNormBlock, [&](int64_t begin, int64_t end) {
        int64_t own[kNormLimbs] = {};
        const int64_t bad = add_blocks(gradient + first + begin, end - begin, weight, own);
        merge(limbs, own);
        if (bad > 0 && counters != nullptr) add_to(limbs[counters[&extent - args.unit->parameters]], bad);
      });
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
