// record_loss, fill_padding, fold_metrics, clip_factor: the small steps around the model. Layouts in runtime/plan/report.h.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/report_steps.h"

namespace zeroplan::kernels_cuda {

namespace {

struct Scalar {
  const void* data;
  DType dtype;
};

// metrics [2V + 2]
__global__ void record_loss(Scalar sum, Scalar weight, double* metrics, int64_t micro_batches, const RunScalars* run, KernelFault* fault,
                            int place) {
  const int64_t v = run->micro_batch;
  if (v < 0 || v >= micro_batches) return report_fault(fault, {KernelFault::index_outside_table, place, v, 0, micro_batches});
  metrics[v] = load_as<double>(sum.data, sum.dtype, 0);
  metrics[micro_batches + v] = weight.data != nullptr ? load_as<double>(weight.data, weight.dtype, 0) : 1;
}

// buffer [padded elements of the unit]
template <typename T>
__global__ void fill_padding(UnitArgs unit, T* buffer) {
  int64_t filled = 0;
  for (int i = 0; i <= unit.count; ++i) {
    const bool last = i == unit.count;
    const int64_t end = last ? unit.padded_elements : unit.parameters[i].offset;
    for_items(end - filled, [&](int64_t k) { buffer[filled + k] = T(0); });
    if (!last) filled = end + unit.parameters[i].elements;
  }
}

// metrics [2V + 2], report [kReportFields]; scale [] or null
__global__ void fold_metrics(double* metrics, int64_t micro_batches, bool divided, double* report, const float* scale) {
  fold_window(metrics, micro_batches, divided, report, scale != nullptr ? *scale : 1);
}

// scale [], overflows [1 + parameters]; null and 0 without a loss scale.
struct LossScale {
  float* scale;
  int64_t* overflows;
  int64_t parameters;
};

// limbs [kNormLimbs + parameters], report [kReportFields]. One block; thread 0 counts in shared memory.
__global__ void clip_factor(int64_t* limbs, const RunScalars* run, double* report, LossScale loss) {
  __shared__ int64_t own[kNormLimbs];
  for (int i = static_cast<int>(threadIdx.x); i < kNormLimbs; i += static_cast<int>(blockDim.x)) {
    own[i] = limbs[i];
    limbs[i] = 0;
  }
  for (int64_t p = threadIdx.x; p < loss.parameters; p += blockDim.x) take_overflow(limbs, loss.overflows, p);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (loss.scale == nullptr) return fold_norm(own, run->clip, report);
  fold_scaled_norm(own, run->clip, report, loss.scale, &loss.overflows[0]);
}

}  // namespace

// sum, weight (optional), metrics → metrics'
void record_loss_kernel(const KernelArgs& args) {
  const TensorView &sum = args.inputs[0], &weight = args.inputs[1], &metrics = args.outputs[0];
  launch(args, 1, 1, 0, record_loss, Scalar{sum.data, sum.dtype}, Scalar{weight.data, weight.dtype}, metrics.as<double>(),
         (metrics.dims[0] - 2) / 2, args.scalars, context_of(args).fault(), args.place);
}

// output: the whole buffer of the unit; the inputs are the gradients inside it.
void fill_padding_kernel(const KernelArgs& args) {
  const TensorView& buffer = args.outputs[0];
  visit_width(buffer.dtype, [&](auto zero) {
    launch(args, blocks_for(args, 1), kBlock, 0, fill_padding<decltype(zero)>, *args.unit, buffer.as<decltype(zero)>());
  });
}

// metrics, report, loss scale (optional) → report', metrics' zeroed
void fold_metrics_kernel(const KernelArgs& args) {
  const TensorView &report = args.outputs[0], &metrics = args.outputs[1];
  launch(args, 1, 1, 0, fold_metrics, metrics.as<double>(), (metrics.dims[0] - 2) / 2, args.attributes->get_int(Attr::value, 0) == 1,
         report.as<double>(), args.input_count > 2 ? args.inputs[2].as<float>() : nullptr);
}

// limbs, report → report', limbs' zeroed; with a loss scale also scale, overflows → scale', overflows'
void clip_factor_kernel(const KernelArgs& args) {
  LossScale loss = {};
  if (args.output_count > 2) loss = {args.outputs[2].as<float>(), args.outputs[3].as<int64_t>(), args.outputs[3].dims[0] - 1};
  launch(args, 1, kBlock, 0, clip_factor, args.outputs[1].as<int64_t>(), args.scalars, args.outputs[0].as<double>(), loss);
}

}  // namespace zeroplan::kernels_cuda
