// optimizer_update: weights, gradient, report, moments… → weights', moments'…, gradient' zeroed; all in place. One launch per unit.
// Of weights in 16 bits the first moment is the master that is updated; they are rounded from it.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/extents.h"
#include "kernels/scalar/optimizer.h"

namespace zeroplan::kernels_cuda {

namespace {

// The flat buffers; all begin at the first covered element. Rules without a moment leave its pointer null. Stored is T where weights are
// kept as they are computed.
template <typename T, typename Stored>
struct Buffers {
  T *weights, *gradient, *first_moment, *second_moment;
  Stored* rounded;  // the weights that the model reads, where `weights` are their master
  bool packs;       // all take packs
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
template <UpdateRule kRule, typename Group, typename T, typename Stored>
__device__ void update_group(const Buffers<T, Stored>& b, int64_t at, bool first_step, const StepScalars<T>& s) {
  constexpr bool kFirst = kRule != UpdateRule::sgd, kSecond = kRule == UpdateRule::adamw || kRule == UpdateRule::adam;
  const auto group = [at](T* buffer) { return reinterpret_cast<Group*>(buffer + at); };
  Group p = *group(b.weights), g = *group(b.gradient), m = {}, v = {};
  if constexpr (kFirst) m = *group(b.first_moment);
  if constexpr (kSecond) v = *group(b.second_moment);
  for (int i = 0; i < Group::kItems; ++i) update_element<kRule>(p.item[i], g.item[i], m.item[i], v.item[i], first_step, s);
  *group(b.weights) = p;
  if constexpr (!std::is_same_v<T, Stored>) {
    Neighbours<Stored, Group::kItems> rounded;
    for (int i = 0; i < Group::kItems; ++i) rounded.item[i] = narrow<Stored>(p.item[i]);
    *reinterpret_cast<Neighbours<Stored, Group::kItems>*>(b.rounded + at) = rounded;
  }
  *group(b.gradient) = g;
  if constexpr (kFirst) *group(b.first_moment) = m;
  if constexpr (kSecond) *group(b.second_moment) = v;
}

// Buffers [covered]; report [kReportFields].
template <UpdateRule kRule, typename T, typename Stored>
__global__ void update(UnitArgs unit, Buffers<T, Stored> b, const double* report, const RunScalars* run) {
  __shared__ StepScalars<T> shared;
  if (threadIdx.x == 0) shared = step_scalars<T>(*run, report);
  __syncthreads();
  StepScalars<T> s = shared;
  const bool skip = report[kReportSkip] != 0, first_step = update_count(*run) == 1;
  for_extents(unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
    constexpr int kCount = Pack<T>::kItems;
    s.decay = decay_scalar<T>(*run, kRule, extent.decay);
    if (skip) return for_items(count, [&](int64_t i) { b.gradient[first + i] = T(0); });
    const int64_t packs = b.packs && first % kCount == 0 ? count / kCount : 0, rest = packs * kCount;
    for_items(packs, [&](int64_t i) { update_group<kRule, Pack<T>>(b, first + i * kCount, first_step, s); });
    for_items(count - rest, [&](int64_t i) { update_group<kRule, Neighbours<T, 1>>(b, first + rest + i, first_step, s); });
  });
}

template <typename T, typename Stored>
void run_update(const KernelArgs& args) {
  const int master = std::is_same_v<T, Stored> ? 0 : 1, moments = args.output_count - 2 - master;  // master: output that is updated
  const auto data = [&](int output) { return args.outputs[output].as<T>(); };
  Buffers<T, Stored> b = {data(master), data(args.output_count - 1), moments > 0 ? data(master + 1) : nullptr,
                          moments > 1 ? data(master + 2) : nullptr, args.outputs[0].as<Stored>()};
  b.packs = aligned(b.weights) && aligned(b.gradient) && aligned(b.first_moment) && aligned(b.second_moment) && aligned(b.rounded);
  const auto run = [&](auto* kernel) {
    launch(args, blocks_for(args, args.unit->covered / Pack<T>::kItems), kBlock, 0, kernel, *args.unit, b, args.inputs[2].as<double>(),
           args.scalars);
  };
  switch (update_rule(args.attributes->get_string(Attr::optimizer), moments > 0)) {
    case UpdateRule::adamw: return run(update<UpdateRule::adamw, T, Stored>);
    case UpdateRule::adam: return run(update<UpdateRule::adam, T, Stored>);
    case UpdateRule::sgd: return run(update<UpdateRule::sgd, T, Stored>);
    case UpdateRule::sgd_momentum: return run(update<UpdateRule::sgd_momentum, T, Stored>);
  }
}

}  // namespace

void optimizer_update_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_update<WideOf<decltype(zero)>, decltype(zero)>(args); });
}

}  // namespace zeroplan::kernels_cuda
