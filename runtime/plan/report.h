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
  kReportWeight,       // W that gradients are divided by: samples, tokens or class weights of the window; 1 for a final sum
  kReportNorm,         // global gradient norm before clipping
  kReportClippedNorm,  // after
  kReportFactor,       // clip factor
  kReportSkip,         // 1: nothing is updated (weight 0, stop, loss or norm not finite)
  kReportStop,         // > 0: some rank was asked to stop
  kReportFinite,       // 1: loss and norm are finite
  kReportSum,          // sum of the micro-batches' losses, whether or not kReportLoss divides it
  kReportSumWeight,    // sum of their weights
  kReportFields = 16,
};

// norm accumulator, i64 [kNormLimbs]: exact sum of fp64 block sums. Limb k counts units of 2^(32 k - 1088); carries are
// propagated when it is read. 68 limbs cover all finite doubles.
inline constexpr int kNormLimbs = 68;
inline constexpr int kNormLowestExponent = -1088;
inline constexpr int64_t kNormBlock = 64;  // elements per block, never across parameters

}  // namespace zeroplan
