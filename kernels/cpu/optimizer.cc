// optimizer_update: weights, gradient, report, moments… → weights', moments'…, gradient' zeroed; all in place. Of weights in 16 bits the
// first moment is the master that is updated; they are rounded from it.
#include "kernels/scalar/optimizer.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/scalar/extents.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// The flat buffers; all begin at the first covered element.
template <typename T>
struct Buffers {
  T *weights, *gradient, *first_moment, *second_moment;
};

template <typename T, UpdateRule kRule>
void update_range(const Buffers<T>& b, int64_t begin, int64_t end, bool first_step, const StepScalars<T>& s) {
  T *w = b.weights + begin, *g = b.gradient + begin;
  T *m = b.first_moment + (b.first_moment ? begin : 0), *v = b.second_moment + (b.second_moment ? begin : 0);
  for_lanes<T>(end - begin, [=](auto at) ZP_LAMBDA {
    Vec<T> p = at.load(w);
    const Vec<T> gradient = scaled_gradient(at.load(g), s);
    if constexpr (kRule == UpdateRule::sgd) sgd_step(p, gradient, s);
    if constexpr (kRule == UpdateRule::sgd_momentum) {
      Vec<T> buffer = at.load(m);
      sgd_momentum_step(p, gradient, buffer, first_step, s);
      at.store(m, buffer);
    }
    if constexpr (kRule == UpdateRule::adamw || kRule == UpdateRule::adam) {
      Vec<T> mean = at.load(m), square = at.load(v);
      if constexpr (kRule == UpdateRule::adamw)
        adamw_step(p, gradient, mean, square, s);
      else
        adam_step(p, gradient, mean, square, s);
      at.store(m, mean);
      at.store(v, square);
    }
    at.store(w, p);
    at.store(g, Vec<T>(T(0)));
  });
}

template <typename T>
void update_extent(UpdateRule rule, const Buffers<T>& b, int64_t begin, int64_t end, bool first_step, const StepScalars<T>& s) {
  if (rule == UpdateRule::adamw)
    update_range<T, UpdateRule::adamw>(b, begin, end, first_step, s);
  else if (rule == UpdateRule::adam)
    update_range<T, UpdateRule::adam>(b, begin, end, first_step, s);
  else if (rule == UpdateRule::sgd)
    update_range<T, UpdateRule::sgd>(b, begin, end, first_step, s);
  else
    update_range<T, UpdateRule::sgd_momentum>(b, begin, end, first_step, s);
}

// Weights in 16 bits, from their master.
void round_weights(const KernelArgs& args, int64_t first, int64_t count) {
  put<float>(static_cast<const float*>(args.outputs[1].data) + first, count, args.outputs[0], first, 1);
}

template <typename T>
void run_update(const KernelArgs& args) {
  constexpr int64_t kGrain = 4096;
  const bool rounds = is_half(args.outputs[0].dtype);
  const int kept = rounds ? 1 : 0, moments = args.output_count - 2 - kept;  // output that is updated
  const UpdateRule rule = update_rule(args.attributes->get_string(Attr::optimizer), moments > 0);
  const double* report = static_cast<const double*>(args.inputs[2].data);
  const auto data = [](const TensorView& view) { return static_cast<T*>(view.data); };
  const Buffers<T> b{data(args.outputs[kept]), data(args.outputs[args.output_count - 1]),
                     moments > 0 ? data(args.outputs[kept + 1]) : nullptr, moments > 1 ? data(args.outputs[kept + 2]) : nullptr};
  const bool first_step = update_count(*args.scalars) == 1;
  const bool skip = report[kReportSkip] != 0;
  StepScalars<T> s = step_scalars<T>(*args.scalars, report);
  for_extents(*args.unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
    s.decay = decay_scalar<T>(*args.scalars, rule, extent.decay);
    parallel_ranges(args.threads, count, kGrain, [&](int64_t begin, int64_t end) {
      if (skip)
        std::fill(b.gradient + first + begin, b.gradient + first + end, T(0));
      else
        update_extent(rule, b, first + begin, first + end, first_step, s);
      if (rounds && !skip) round_weights(args, first + begin, end - begin);
    });
  });
}

}  // namespace

void optimizer_update_kernel(const KernelArgs& args) {
  visit_floating(wide_dtype(args.outputs[0].dtype), [&](auto zero) { run_update<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
