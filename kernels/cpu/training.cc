// record_loss, fill_padding, fold_metrics, clip_factor: the small steps around the model. Layouts in runtime/plan/report.h.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/strided_copy.h"
#include "runtime/plan/report.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

double read_scalar(const TensorView& x) {
  return visit_dtype(x.dtype, [&](auto zero) { return static_cast<double>(*static_cast<const decltype(zero)*>(x.data)); });
}

// The sum of the limbs, rounded once, as mantissa · 2^exponent with the carries propagated.
double limbs_value(int64_t* limbs) {
  int64_t carry = 0;
  int top = -1;
  for (int i = 0; i < kNormLimbs; ++i) {
    const int64_t sum = limbs[i] + carry;  // every limb is a sum of pieces below 2^32, at most 2^31 of them
    limbs[i] = sum & 0xffffffff;
    carry = sum >> 32;
    if (limbs[i] != 0) top = i;
  }
  if (top < 0) return 0;
  // The three highest limbs hold at least 65 bits; what lies below only decides ties.
  unsigned __int128 mantissa = 0;
  for (int i = top; i > top - 3; --i) mantissa = mantissa << 32 | static_cast<uint64_t>(i >= 0 ? limbs[i] : 0);
  bool below = false;
  for (int i = 0; i <= top - 3; ++i) below = below || limbs[i] != 0;
  return std::ldexp(static_cast<double>(mantissa | (below ? 1 : 0)), 32 * (top - 2) + kNormLowestExponent);
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

// metrics, report → report', metrics' zeroed
void fold_metrics_kernel(const KernelArgs& args) {
  double *report = static_cast<double*>(args.outputs[0].data), *metrics = static_cast<double*>(args.outputs[1].data);
  const int64_t count = (args.outputs[1].dims[0] - 2) / 2;
  double loss = 0, weight = 0;
  for (int64_t v = 0; v < count; ++v) {
    loss += metrics[v];
    weight += metrics[count + v];
  }
  const bool divided = args.attributes->get_int(Attr::value, 0) == 1;
  std::fill_n(report, static_cast<int>(kReportFields), 0.0);
  report[kReportSum] = loss;
  report[kReportSumWeight] = weight;
  if (divided && weight > 0) loss /= weight;
  const double divisor = divided ? weight : 1;
  const bool finite = std::isfinite(loss) && std::isfinite(weight);
  report[kReportLoss] = loss;
  report[kReportWeight] = divisor;
  report[kReportFactor] = 1;
  report[kReportStop] = metrics[metrics_stop(count)];
  report[kReportFinite] = finite;
  report[kReportSkip] = !(weight > 0) || !finite || report[kReportStop] != 0;
  std::fill_n(metrics, args.outputs[1].dims[0], 0.0);
}

// limbs, report → report', limbs' zeroed
void clip_factor_kernel(const KernelArgs& args) {
  double* report = static_cast<double*>(args.outputs[0].data);
  int64_t* limbs = static_cast<int64_t*>(args.outputs[1].data);
  const bool finite = limbs[kNormLimbs - 1] == 0;  // grad_norm marks sums that are not
  const double norm = finite ? std::sqrt(limbs_value(limbs)) : __builtin_nan("");
  const double clip = args.scalars->clip;
  const double factor = clip > 0 && norm > clip ? clip / norm : 1;
  report[kReportNorm] = norm;
  report[kReportFactor] = factor;
  report[kReportClippedNorm] = norm * factor;
  if (!std::isfinite(norm)) {
    report[kReportFinite] = 0;
    report[kReportSkip] = 1;
  }
  std::fill_n(limbs, kNormLimbs, int64_t{0});
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
