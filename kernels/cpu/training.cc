// record_loss, fill_padding, fold_metrics, clip_factor: the small steps around the model. Layouts in runtime/plan/report.h.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/scalar/report_steps.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

double read_scalar(const TensorView& x) {
  return visit_dtype(x.dtype, [&](auto zero) { return static_cast<double>(*static_cast<const decltype(zero)*>(x.data)); });
}

}  // namespace

// sum, weight (optional), metrics → metrics'
void record_loss_kernel(const KernelArgs& args) {
  double* metrics = static_cast<double*>(args.outputs[0].data);
  const int64_t count = (args.outputs[0].dims[0] - 2) / 2, v = args.scalars->micro_batch;
  check(v >= 0 && v < count, "record_loss: no such micro-batch in the metrics");
  metrics[v] = read_scalar(args.inputs[0]);
  metrics[count + v] = args.inputs[1].data ? read_scalar(args.inputs[1]) : 1;
}

// output: the whole buffer of the unit; the inputs are the gradients inside it.
void fill_padding_kernel(const KernelArgs& args) {
  const UnitArgs& unit = *args.unit;
  visit_width(args.outputs[0].dtype, [&](auto zero) {
    auto* buffer = static_cast<decltype(zero)*>(args.outputs[0].data);
    int64_t filled = 0;
    for (int i = 0; i < unit.count; ++i) {
      std::fill(buffer + filled, buffer + unit.parameters[i].offset, zero);
      filled = unit.parameters[i].offset + unit.parameters[i].elements;
    }
    std::fill(buffer + filled, buffer + unit.padded_elements, zero);
  });
}

// metrics, report, loss scale (optional) → report', metrics' zeroed
void fold_metrics_kernel(const KernelArgs& args) {
  const double scale = args.input_count > 2 ? *static_cast<const float*>(args.inputs[2].data) : 1;
  const bool divided = args.attributes->get_int(Attr::value, 0) == 1;
  fold_window(static_cast<double*>(args.outputs[1].data), (args.outputs[1].dims[0] - 2) / 2, divided,
              static_cast<double*>(args.outputs[0].data), scale);
}

// limbs, report → report', limbs' zeroed; with a loss scale also scale, overflows → scale', overflows'
void clip_factor_kernel(const KernelArgs& args) {
  auto* limbs = static_cast<int64_t*>(args.outputs[1].data);
  auto* report = static_cast<double*>(args.outputs[0].data);
  if (args.output_count == 2) return fold_norm(limbs, args.scalars->clip, report);
  auto* overflows = static_cast<int64_t*>(args.outputs[3].data);
  for (int64_t p = 0; p < args.outputs[3].dims[0] - 1; ++p) take_overflow(limbs, overflows, p);
  fold_scaled_norm(limbs, args.scalars->clip, report, static_cast<float*>(args.outputs[2].data), &overflows[0]);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
