#pragma once
// The small steps around the model on one thread of any device, in double. Layouts in runtime/plan/report.h.
#include "kernels/scalar/norm_limbs.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

ZP_DEVICE bool is_finite(double x) { return x - x == 0; }

// The metrics of V = micro_batches, folded in their order, begin a report; they are zeroed. divided: the loss is divided by the weight.
// scale: of the loss, when gradients were computed.
ZP_DEVICE void fold_window(double* metrics, int64_t micro_batches, bool divided, double* report, double scale = 1) {
  double loss = 0, weight = 0;
  for (int64_t v = 0; v < micro_batches; ++v) {
    loss += metrics[v];
    weight += metrics[micro_batches + v];
  }
  for (int i = 0; i < kReportFields; ++i) report[i] = 0;
  report[kReportSum] = loss;
  report[kReportSumWeight] = weight;
  if (divided && weight > 0) loss /= weight;
  const bool finite = is_finite(loss) && is_finite(weight);
  report[kReportLoss] = loss;
  report[kReportWeight] = (divided ? weight : 1) * scale;
  report[kReportScale] = scale;
  report[kReportFactor] = 1;
  report[kReportStop] = metrics[2 * micro_batches];
  report[kReportFinite] = finite ? 1 : 0;
  report[kReportSkip] = !(weight > 0) || !finite || report[kReportStop] != 0 ? 1 : 0;
  for (int64_t i = 0; i < 2 * micro_batches + 2; ++i) metrics[i] = 0;
}

// The norm in `limbs`, and the factor that brings it to at most `clip` (0: any norm). The limbs are zeroed.
ZP_DEVICE void fold_norm(int64_t* limbs, double clip, double* report) {
  const bool finite = limbs[kNormLimbs - 1] == 0;  // grad_norm marks sums that are not
  const double norm = finite ? sqrt(limbs_value(limbs)) : double{__builtin_nan("")};
  const double factor = clip > 0 && norm > clip ? clip / norm : 1;
  report[kReportNorm] = norm;
  report[kReportFactor] = factor;
  report[kReportClippedNorm] = norm * factor;
  if (!is_finite(norm)) {
    report[kReportFinite] = 0;
    report[kReportSkip] = 1;
  }
  for (int i = 0; i < kNormLimbs; ++i) limbs[i] = 0;
}

// The parameter's blocks that are not finite, from where grad_norm counts them to where the report is made from.
ZP_DEVICE void take_overflow(int64_t* limbs, int64_t* overflows, int64_t parameter) {
  overflows[1 + parameter] = limbs[kNormLimbs + parameter];
  limbs[kNormLimbs + parameter] = 0;
}

// fold_norm of gradients with a loss scale: where they are not finite the step is skipped and the scale smaller, and after enough steps
// in a row without it larger.
ZP_DEVICE void fold_scaled_norm(int64_t* limbs, double clip, double* report, float* scale, int64_t* steps_in_a_row) {
  const bool scale_is_to_blame = report[kReportFinite] != 0 && *scale >= kLossScaleLeast, counts = report[kReportSkip] == 0;
  fold_norm(limbs, clip, report);
  if (is_finite(report[kReportNorm])) {
    if (counts && ++*steps_in_a_row == kLossScaleInterval) {
      *scale *= kLossScaleGrowth;
      *steps_in_a_row = 0;
    }
    return;
  }
  *steps_in_a_row = 0;
  if (!scale_is_to_blame) return;
  report[kReportFinite] = 1;
  report[kReportOverflow] = 1;
  *scale *= kLossScaleBackoff;
}

struct BatchMoments {
  double mean = 0, variance = 0;
};

// Of micro-batches of one size together: the mean of their variances and the variance of their means. Statistics: [V, 2 C].
ZP_DEVICE BatchMoments moments_of_window(const double* statistics, int64_t micro_batches, int64_t channels, int64_t channel) {
  const auto mean = [&](int64_t v) { return statistics[v * 2 * channels + channel]; };
  const auto variance = [&](int64_t v) { return statistics[(v * 2 + 1) * channels + channel]; };
  BatchMoments all;
  for (int64_t v = 0; v < micro_batches; ++v) all.mean += mean(v);
  all.mean /= static_cast<double>(micro_batches);
  for (int64_t v = 0; v < micro_batches; ++v) all.variance += variance(v) + (mean(v) - all.mean) * (mean(v) - all.mean);
  all.variance /= static_cast<double>(micro_batches);
  return all;
}

// running = kept · running + (1 - kept) · batch
template <typename T>
ZP_DEVICE void move_towards(T& running, double batch, double kept) {
  running = static_cast<T>(kept * static_cast<double>(running) + (1 - kept) * batch);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
