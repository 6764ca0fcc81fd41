#pragma once
// Layouts of the small tensors that the steps around the model share. All f64 unless said otherwise.
#include <cstdint>

namespace zeroplan {

// metrics [2V + 2]: loss sum of micro-batch v at v, its weight at V + v, the stop flag (a count of ranks that raised it), and 0: what is
// reduced is a multiple of 16 bytes.
inline int64_t metrics_elements(int64_t micro_batches) { return 2 * micro_batches + 2; }
inline int64_t metrics_stop(int64_t micro_batches) { return 2 * micro_batches; }

// report: what an update leaves for the run loop and for the optimizer kernels.
enum ReportField : int {
  kReportLoss,         // over the whole batch, before the update
  kReportWeight,       // W that gradients are divided by: samples, tokens or class weights of the window (1 for a final sum), times the
                       // loss scale
  kReportNorm,         // global gradient norm before clipping
  kReportClippedNorm,  // after
  kReportFactor,       // clip factor
  kReportSkip,         // 1: nothing is updated (weight 0, stop, loss or norm not finite)
  kReportStop,         // > 0: some rank was asked to stop
  kReportFinite,       // 1: loss and norm are finite
  kReportSum,          // sum of the micro-batches' losses, whether or not kReportLoss divides it
  kReportSumWeight,    // sum of their weights
  kReportOverflow,     // 1: skipped, as some gradient is not finite under a loss scale that may be too large
  kReportScale,        // loss scale that the gradients were computed with; 1 without
  kReportFields = 16,
};

// norm accumulator, i64 [kNormLimbs]: exact sum of fp64 block sums. Limb k counts units of 2^(32 k - 1088); carries are
// propagated when it is read. 68 limbs cover all finite doubles.
inline constexpr int kNormLimbs = 68;
inline constexpr int kNormLowestExponent = -1088;
inline constexpr int64_t kNormBlock = 64;  // elements per block, never across parameters
// With a loss scale, one more limb for each parameter follows: its blocks whose sum is not finite, on all ranks.
inline int64_t norm_elements(int64_t parameters) { return kNormLimbs + parameters; }

// overflows, i64: updates in a row without overflow, then for each parameter its limb of the last update that was skipped.
inline int64_t overflow_elements(int64_t parameters) { return 1 + parameters; }

// The loss scale, as in "Mixed Precision Training" (Micikevicius et al. 2018), with the numbers of PyTorch's GradScaler.
inline constexpr float kLossScaleStart = 65536, kLossScaleGrowth = 2, kLossScaleBackoff = 0.5;
inline constexpr float kLossScaleLeast = 0x1p-24f;   // below it, gradients that are not finite are an error
inline constexpr int64_t kLossScaleInterval = 2000;  // updates without overflow until it grows

}  // namespace zeroplan
