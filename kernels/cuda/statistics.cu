// record_statistics and fold_statistics: what batch normalization keeps of its batches. All sums in double, in micro-batch order.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/report_steps.h"

namespace zeroplan::kernels_cuda {

namespace {

// mean, variance [C]; statistics [V, 2 C]
template <typename T>
__global__ void record_statistics(int64_t channels, const T* mean, const T* variance, double* statistics, int64_t micro_batches,
                                  const RunScalars* run, KernelFault* fault, int place) {
  const int64_t v = run->micro_batch;
  if (v < 0 || v >= micro_batches) return report_fault(fault, {KernelFault::index_outside_table, place, v, 0, micro_batches});
  double* row = statistics + v * 2 * channels;
  for_items(channels, [&](int64_t c) {
    row[c] = static_cast<double>(widen(mean[c]));
    row[channels + c] = static_cast<double>(widen(variance[c]));
  });
}

// running mean, variance [C]; statistics [V, 2 C]; each thread reads and clears the columns of its channels.
template <typename T>
__global__ void fold_statistics(int64_t channels, T* mean, T* variance, double* statistics, int64_t micro_batches, double kept,
                                const double* report) {
  const bool skip = report[kReportSkip] != 0;
  for_items(channels, [&](int64_t c) {
    if (!skip) {
      const BatchMoments batch = moments_of_window(statistics, micro_batches, channels, c);
      move_towards(mean[c], batch.mean, kept);
      move_towards(variance[c], batch.variance, kept);
    }
    for (int64_t row = 0; row < 2 * micro_batches; ++row) statistics[row * channels + c] = 0;
  });
}

}  // namespace

// mean [C], variance [C], statistics [V, 2 C] → statistics', whose row of this micro-batch is written
void record_statistics_kernel(const KernelArgs& args) {
  const TensorView &mean = args.inputs[0], &variance = args.inputs[1], &statistics = args.outputs[0];
  visit_floating(mean.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, mean.dims[0], record_statistics<T>, mean.as<T>(), variance.as<T>(), statistics.as<double>(), statistics.dims[0],
                args.scalars, context_of(args).fault(), args.place);
  });
}

// weights, statistics, report → weights', statistics' zeroed: running = momentum · running + (1 - momentum) · batch
void fold_statistics_kernel(const KernelArgs& args) {
  const TensorView &weights = args.outputs[0], &statistics = args.outputs[1];
  const std::vector<int64_t>& starts = args.attributes->get_ints(Attr::starts);
  const double kept = args.attributes->get_double(Attr::momentum);
  const auto fold = [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, statistics.dims[1] / 2, fold_statistics<T>, weights.as<T>() + starts[0], weights.as<T>() + starts[1],
                statistics.as<double>(), statistics.dims[0], kept, args.inputs[2].as<double>());
  };
  if (weights.dtype == DType::f64) return fold(double{});
  fold(float{});
}

}  // namespace zeroplan::kernels_cuda
