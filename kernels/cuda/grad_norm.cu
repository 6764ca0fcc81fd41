// grad_norm: Σ (g / W)² over a shard, exact beyond blocks of 64 elements: the bits of the CPU kernel, in whatever order threads run.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/extents.h"
#include "kernels/scalar/report_steps.h"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kLanes = 16;  // threads that share a block of kNormBlock elements: the CPU kernel's lanes

// limbs += piece. Integer additions commute.
__device__ void add_to(int64_t* limb, int64_t piece) {
  atomicAdd(reinterpret_cast<unsigned long long*>(limb), static_cast<unsigned long long>(piece));
}

// Σ (g / W)² of up to 64 elements, in thread 0 of 16: each thread every 16th element in order, then a fixed tree, in double.
template <typename T>
__device__ double block_sum(const T* g, int64_t n, double weight, int lane) {
  double sum = 0;
  for (int64_t i = lane; i < kNormBlock; i += kLanes) {
    const double x = (i < n ? static_cast<double>(g[i]) : 0.0) / weight;
    sum += x * x;
  }
  for (int half = kLanes / 2; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half, kLanes);
  return sum;
}

// Where the blocks that are not finite are counted, for some parameters of a unit; passed to the kernel by value.
struct Counters {
  static constexpr int kMost = 64;
  int limb[kMost] = {};  // 0: nowhere
};

// gradient [covered]; report [kReportFields]; limbs [kNormLimbs, or more where there are counters]
template <typename T>
__global__ void add_squares(UnitArgs unit, const T* gradient, const double* report, int64_t* limbs, Counters counters) {
  __shared__ int64_t own[kNormLimbs];
  const double weight = report[kReportWeight];
  if (weight == 0) return;  // an empty window: nothing was accumulated
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), lane = thread % kLanes;
  for (int i = thread; i < kNormLimbs; i += threads) own[i] = 0;
  __syncthreads();
  constexpr int kPair = kWarp / kLanes;  // blocks of a warp, which stays together
  const int64_t first_block = (int64_t{blockIdx.x} * threads + thread) / kWarp * kPair, stride = int64_t{gridDim.x} * threads / kLanes;
  for_extents(unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
    const int64_t parameter = &extent - unit.parameters;
    const int counter = parameter < Counters::kMost ? counters.limb[parameter] : 0;
    for (int64_t pair = first_block; pair * kNormBlock < count; pair += stride) {
      const int64_t at = (pair + thread % kWarp / kLanes) * kNormBlock;
      const double sum = block_sum(gradient + first + at, count - at, weight, lane);
      if (lane != 0) continue;
      add_exactly(sum, [&](int limb, int64_t piece) { add_to(&own[limb], piece); });
      if (counter > 0 && !is_finite(sum)) add_to(&limbs[counter], 1);
    }
  });
  __syncthreads();
  for (int i = thread; i < kNormLimbs; i += threads)
    if (own[i] != 0) add_to(&limbs[i], own[i]);
}

}  // namespace

// gradient shard, report, limbs → limbs' (in place). starts: for each parameter of the unit the limb that counts its blocks that are not
// finite; then a launch takes as many parameters as there is room for.
void grad_norm_kernel(const KernelArgs& args) {
  const TensorView& gradient = args.inputs[0];
  const unsigned blocks = blocks_for(args, args.unit->covered / (kNormBlock / kLanes));
  const auto add = [&](auto zero, const UnitArgs& unit, const Counters& counters) {
    using T = decltype(zero);
    launch(args, blocks, kBlock, 0, add_squares<T>, unit, gradient.as<T>(), args.inputs[1].as<double>(), args.outputs[0].as<int64_t>(),
           counters);
  };
  if (gradient.dtype == DType::f64) return add(double{}, *args.unit, {});
  if (args.attributes == nullptr || !args.attributes->has(Attr::starts)) return add(float{}, *args.unit, {});
  const std::vector<int64_t>& limbs = args.attributes->get_ints(Attr::starts);
  for (int from = 0; from < args.unit->count; from += Counters::kMost) {
    UnitArgs part = *args.unit;
    part.parameters += from;
    part.count = std::min(args.unit->count - from, Counters::kMost);
    Counters counters;
    for (int i = 0; i < part.count; ++i) counters.limb[i] = static_cast<int>(limbs[from + i]);
    add(float{}, part, counters);
  }
}

}  // namespace zeroplan::kernels_cuda
