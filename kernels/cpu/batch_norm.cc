// batch_norm and batch_norm_grad: one channel after the other, whose planes stay in the second cache between the passes over them.
#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// x [N, C, plane]
struct ChannelShape {
  int64_t batch, channels, plane;
  explicit ChannelShape(const TensorView& x) : batch(x.dims[0]), channels(x.dims[1]), plane(count_elements(x) / (batch * channels)) {}
  int64_t offset(int64_t n, int64_t channel) const { return (n * channels + channel) * plane; }
  double count() const { return static_cast<double>(batch * plane); }
};

// Sum over the channel's planes, in their order, of what term(offset) sums up over one.
template <typename Fn>
double sum_planes(const ChannelShape& s, int64_t channel, const Fn& term) {
  double sum = 0;
  for (int64_t n = 0; n < s.batch; ++n) sum += static_cast<double>(term(s.offset(n, channel)));
  return sum;
}

template <typename T>
void run_forward(const KernelArgs& args) {
  const ChannelShape s(args.inputs[0]);
  const T *all = static_cast<const T*>(args.inputs[0].data), *gamma = static_cast<const T*>(args.inputs[1].data),
          *beta = static_cast<const T*>(args.inputs[2].data);
  T *y = static_cast<T*>(args.outputs[0].data), *means = static_cast<T*>(args.outputs[1].data),
    *variances = static_cast<T*>(args.outputs[2].data);
  const double epsilon = args.attributes->get_double(Attr::epsilon);
  parallel_for(args.threads, s.channels, [&](int64_t c) {
    const double mean = sum_planes(s, c,
                                   [&](int64_t at) {
                                     const T* x = all + at;
                                     return sum_over<T>(s.plane, [=](auto i) ZP_LAMBDA { return i.load(x); });
                                   }) /
                        s.count();
    const Vec<T> m(static_cast<T>(mean));
    const double variance = sum_planes(s, c,
                                       [&](int64_t at) {
                                         const T* x = all + at;
                                         return sum_over<T>(s.plane, [=](auto i) ZP_LAMBDA {
                                           const Vec<T> d = i.load(x) - m;
                                           return d * d;
                                         });
                                       }) /
                            s.count();
    const Vec<T> factor(static_cast<T>(static_cast<double>(gamma[c]) / std::sqrt(variance + epsilon))), shift(beta[c]);
    for (int64_t n = 0; n < s.batch; ++n) {
      const T* x = all + s.offset(n, c);
      T* to = y + s.offset(n, c);
      for_lanes<T>(s.plane, [=](auto i) ZP_LAMBDA { i.store(to, (i.load(x) - m) * factor + shift); });
    }
    means[c] = static_cast<T>(mean);
    variances[c] = static_cast<T>(variance);
  });
}

// With x̂ = (x - mean)·rstd: dx = gamma·rstd·(dy - mean(dy) - x̂·mean(dy·x̂)).
template <typename T>
void run_backward(const KernelArgs& args) {
  const ChannelShape s(args.inputs[0]);
  const auto in = [&](int i) { return static_cast<const T*>(args.inputs[i].data); };
  const auto out = [&](int i) { return static_cast<T*>(args.outputs[i].data); };
  const double epsilon = args.attributes->get_double(Attr::epsilon);
  parallel_for(args.threads, s.channels, [&](int64_t c) {
    const double rstd = 1 / std::sqrt(static_cast<double>(in(4)[c]) + epsilon);
    const Vec<T> mean(in(3)[c]);
    double sum = 0, dot = 0;
    for (int64_t n = 0; n < s.batch; ++n) {
      const T *dy = in(0) + s.offset(n, c), *x = in(1) + s.offset(n, c);
      sum += static_cast<double>(sum_over<T>(s.plane, [=](auto i) ZP_LAMBDA { return i.load(dy); }));
      dot += static_cast<double>(sum_over<T>(s.plane, [=](auto i) ZP_LAMBDA { return i.load(dy) * (i.load(x) - mean); }));
    }
    dot *= rstd;
    const Vec<T> factor(static_cast<T>(static_cast<double>(in(2)[c]) * rstd)), even(static_cast<T>(sum / s.count())),
        slope(static_cast<T>(rstd * dot / s.count()));
    for (int64_t n = 0; n < s.batch; ++n) {
      const T *dy = in(0) + s.offset(n, c), *x = in(1) + s.offset(n, c);
      T* dx = out(0) + s.offset(n, c);
      for_lanes<T>(s.plane, [=](auto i) ZP_LAMBDA { i.store(dx, factor * (i.load(dy) - even - (i.load(x) - mean) * slope)); });
    }
    out(1)[c] = static_cast<T>(dot);
    out(2)[c] = static_cast<T>(sum);
  });
}

}  // namespace

void batch_norm_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_forward<decltype(zero)>(args); });
}

void batch_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_backward<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
