// optimizer_update: weights, gradient, report, moments… → weights', moments'…, gradient' zeroed; all in place.
#include <cmath>
#include <string>

#include "kernels/cpu/extents.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/failures.h"
#include "kernels/scalar/optimizer.h"
#include "runtime/plan/report.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

enum class Rule : uint8_t { adamw, adam, sgd, sgd_momentum };

Rule rule_of(const KernelArgs& args) {
  const std::string& name = args.attributes->get_string(Attr::optimizer);
  if (name == "adamw") return Rule::adamw;
  if (name == "adam") return Rule::adam;
  if (name == "sgd") return args.input_count > 3 ? Rule::sgd_momentum : Rule::sgd;
  unknown_optimizer(name);
}

template <typename T>
StepScalars<T> step_scalars(const RunScalars& run, const double* report, Rule rule, double decay_factor) {
  const double decay = run.weight_decay * decay_factor, t = static_cast<double>(run.step);
  StepScalars<T> s;
  s.weight = static_cast<T>(report[kReportWeight]);
  s.factor = static_cast<T>(report[kReportFactor]);
  s.decay = static_cast<T>(rule == Rule::adamw ? 1 - run.lr * decay : decay);
  s.beta2 = static_cast<T>(run.beta2);
  s.rest1 = static_cast<T>(1 - run.beta1);
  s.rest2 = static_cast<T>(1 - run.beta2);
  s.step_size = static_cast<T>(run.lr / (1 - std::pow(run.beta1, t)));
  s.root_correction = static_cast<T>(std::sqrt(1 - std::pow(run.beta2, t)));
  s.epsilon = static_cast<T>(run.epsilon);
  s.lr = static_cast<T>(run.lr);
  s.momentum = static_cast<T>(run.momentum);
  return s;
}

// The flat buffers; all begin at the first covered element.
template <typename T>
struct Buffers {
  T *weights, *gradient, *first_moment, *second_moment;
};

template <typename T, Rule kRule>
void update_range(const Buffers<T>& b, int64_t begin, int64_t end, bool first_step, const StepScalars<T>& s) {
  T *w = b.weights + begin, *g = b.gradient + begin;
  T *m = b.first_moment + (b.first_moment ? begin : 0), *v = b.second_moment + (b.second_moment ? begin : 0);
  for_lanes<T>(end - begin, [=](auto at) ZP_LAMBDA {
    Vec<T> p = at.load(w);
    const Vec<T> gradient = scaled_gradient(at.load(g), s);
    if constexpr (kRule == Rule::sgd) sgd_step(p, gradient, s);
    if constexpr (kRule == Rule::sgd_momentum) {
      Vec<T> buffer = at.load(m);
      sgd_momentum_step(p, gradient, buffer, first_step, s);
      at.store(m, buffer);
    }
    if constexpr (kRule == Rule::adamw || kRule == Rule::adam) {
      Vec<T> mean = at.load(m), square = at.load(v);
      if constexpr (kRule == Rule::adamw)
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
void update_extent(Rule rule, const Buffers<T>& b, int64_t begin, int64_t end, bool first_step, const StepScalars<T>& s) {
  if (rule == Rule::adamw)
    update_range<T, Rule::adamw>(b, begin, end, first_step, s);
  else if (rule == Rule::adam)
    update_range<T, Rule::adam>(b, begin, end, first_step, s);
  else if (rule == Rule::sgd)
    update_range<T, Rule::sgd>(b, begin, end, first_step, s);
  else
    update_range<T, Rule::sgd_momentum>(b, begin, end, first_step, s);
}

template <typename T>
void run_update(const KernelArgs& args) {
  constexpr int64_t kGrain = 4096;
  const Rule rule = rule_of(args);
  const int moments = args.input_count - 3;
  const double* report = static_cast<const double*>(args.inputs[2].data);
  const auto data = [](const TensorView& view) { return static_cast<T*>(view.data); };
  const Buffers<T> b{data(args.outputs[0]), data(args.outputs[moments + 1]), moments > 0 ? data(args.outputs[1]) : nullptr,
                     moments > 1 ? data(args.outputs[2]) : nullptr};
  const bool skip = report[kReportSkip] != 0;
  for_extents(*args.unit, [&](int64_t first, int64_t count, const UnitExtent& extent) {
    const StepScalars<T> s = step_scalars<T>(*args.scalars, report, rule, extent.decay);
    parallel_ranges(args.threads, count, kGrain, [&](int64_t begin, int64_t end) {
      if (skip)
        std::fill(b.gradient + first + begin, b.gradient + first + end, T(0));
      else
        update_extent(rule, b, first + begin, first + end, args.scalars->step == 1, s);
    });
  });
}

}  // namespace

void optimizer_update_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_update<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
