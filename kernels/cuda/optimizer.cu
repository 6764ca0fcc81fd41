// optimizer_update: weights, gradient, report, moments… → weights', moments'…, gradient' zeroed; all in place. One launch per unit.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/extents.h"
#include "kernels/scalar/optimizer.h"

namespace zeroplan::kernels_cuda {

namespace {

// The flat buffers; all begin at the first covered element. Rules without a moment leave its pointer null.
template <typename T>
struct Buffers {
  T *weights, *gradient, *first_moment, *second_moment;
  bool packs;  // all take packs
};

template <UpdateRule kRule, typename T>
__device__ void update_element(T& p, T& gradient, T& m, T& v, bool first_step, const StepScalars<T>& s) {
  const T g = scaled_gradient(gradient, s);
  if constexpr (kRule == UpdateRule::adamw) adamw_step(p, g, m, v, s);
  if constexpr (kRule == UpdateRule::adam) adam_step(p, g, m, v, s);
  if constexpr (kRule == UpdateRule::sgd) sgd_step(p, g, s);
  if constexpr (kRule == UpdateRule::sgd_momentum) sgd_momentum_step(p, g, m, first_step, s);
  gradient = T(0);
}

// The elements of the buffers from `at`: a pack of them, or one.
template <UpdateRule kRule, typename Group, typename T>
__device__ void update_group(const Buffers<T>& b, int64_t at, bool first_step, const StepScalars<T>& s) {
  constexpr bool kFirst = kRule != UpdateRule::sgd, kSecond = kRule == UpdateRule::adamw || kRule == UpdateRule::adam;
  const auto group = [at](T* buffer) { return reinterpret_cast<Group*>(buffer + at); };
  Group p = *group(b.weights), g = *group(b.gradient), m = {}, v = {};
  if constexpr (kFirst) m = *group(b.first_moment);
  if constexpr (kSecond) v = *group(b.second_moment);
  for (int i = 0; i < Group::kItems; ++i) update_element<kRule>(p.item[i], g.item[i], m.item[i], v.item[i], first_step, s);
  *group(b.weights) = p;
  *group(b.gradient) = g;
  if constexpr (kFirst) *group(b.first_moment) = m;
  if constexpr (kSecond) *group(b.second_moment) = v;
}

template <typename T>
struct Single {
  static constexpr int kItems = 1;
  T item[1];
};

// Buffers [covered]; report [kReportFields].
template <typename T, UpdateRule kRule>
__global__ void update(UnitArgs unit, Buffers<T> b, const double* report, const RunScalars* run) {
  __shared__ StepScalars<T> shared;
  if (threadIdx.x == 0) shared = step_scalars<T>(*run, report);
  __syncthreads();
  StepScalars<T> s = shared;
  const bool skip = report[kReportSkip] != 0, first_step = run->step == 1;
  for_extents(unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
    constexpr int kCount = Pack<T>::kItems;
    s.decay = decay_scalar<T>(*run, kRule, extent.decay);
    if (skip) return for_items(count, [&](int64_t i) { b.gradient[first + i] = T(0); });
    const int64_t packs = b.packs && first % kCount == 0 ? count / kCount : 0, rest = packs * kCount;
    for_items(packs, [&](int64_t i) { update_group<kRule, Pack<T>>(b, first + i * kCount, first_step, s); });
    for_items(count - rest, [&](int64_t i) { update_group<kRule, Single<T>>(b, first + rest + i, first_step, s); });
  });
}

template <typename T>
Buffers<T> buffers_of(const KernelArgs& args) {
  const int moments = args.input_count - 3;
  Buffers<T> b = {args.outputs[0].as<T>(), args.outputs[moments + 1].as<T>(), moments > 0 ? args.outputs[1].as<T>() : nullptr,
                  moments > 1 ? args.outputs[2].as<T>() : nullptr};
  b.packs = aligned(b.weights) && aligned(b.gradient) && aligned(b.first_moment) && aligned(b.second_moment);
  return b;
}

template <typename T>
void run_update(const KernelArgs& args) {
  const auto run = [&](auto* kernel) {
    launch(args, blocks_for(args, args.unit->covered / Pack<T>::kItems), kBlock, 0, kernel, *args.unit, buffers_of<T>(args),
           args.inputs[2].as<double>(), args.scalars);
  };
  switch (update_rule(args.attributes->get_string(Attr::optimizer), args.input_count > 3)) {
    case UpdateRule::adamw: return run(update<T, UpdateRule::adamw>);
    case UpdateRule::adam: return run(update<T, UpdateRule::adam>);
    case UpdateRule::sgd: return run(update<T, UpdateRule::sgd>);
    case UpdateRule::sgd_momentum: return run(update<T, UpdateRule::sgd_momentum>);
  }
}

}  // namespace

void optimizer_update_kernel(const KernelArgs& args) {
  if (args.outputs[0].dtype == DType::f64) return run_update<double>(args);
  run_update<float>(args);
}

}  // namespace zeroplan::kernels_cuda
