// record_statistics and fold_statistics: what batch normalization keeps of its batches. All sums in double, in micro-batch order.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/scalar/report_steps.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

// mean [C], variance [C], statistics [V, 2 C] → statistics', whose row of this micro-batch is written
void record_statistics_kernel(const KernelArgs& args) {
  const int64_t channels = args.inputs[0].dims[0], v = args.scalars->micro_batch;
  check(v >= 0 && v < args.outputs[0].dims[0], "record_statistics: no such micro-batch in the statistics");
  double* row = static_cast<double*>(args.outputs[0].data) + v * 2 * channels;
  visit_floating(args.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    std::copy_n(static_cast<const T*>(args.inputs[0].data), channels, row);
    std::copy_n(static_cast<const T*>(args.inputs[1].data), channels, row + channels);
  });
}

// weights, statistics, report → weights', statistics' zeroed: running = momentum · running + (1 - momentum) · batch
void fold_statistics_kernel(const KernelArgs& args) {
  const double* report = static_cast<const double*>(args.inputs[2].data);
  double* statistics = static_cast<double*>(args.outputs[1].data);
  const int64_t micro_batches = args.outputs[1].dims[0], channels = args.outputs[1].dims[1] / 2;
  const double kept = args.attributes->get_double(Attr::momentum);
  const std::vector<int64_t>& starts = args.attributes->get_ints(Attr::starts);
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* mean = static_cast<T*>(args.outputs[0].data) + starts[0];
    T* variance = static_cast<T*>(args.outputs[0].data) + starts[1];
    for (int64_t c = 0; c < channels && report[kReportSkip] == 0; ++c) {
      const BatchMoments batch = moments_of_window(statistics, micro_batches, channels, c);
      move_towards(mean[c], batch.mean, kept);
      move_towards(variance[c], batch.variance, kept);
    }
  });
  std::fill_n(statistics, micro_batches * 2 * channels, 0.0);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
