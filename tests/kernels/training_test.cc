// The kernels of the training step against values worked out by hand or in double.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "runtime/plan/report.h"
#include "tests/kernels/step_call.h"

namespace zeroplan {
namespace {

template <typename T>
DType dtype_of() {
  if (sizeof(T) == 4) return DType::f32;
  return std::is_same_v<T, int64_t> ? DType::i64 : DType::f64;
}
template <typename T>
TensorView vector_view(std::vector<T>& v) {
  return make_view(v.data(), dtype_of<T>(), {static_cast<int64_t>(v.size())});
}
template <typename T>
TensorView scalar_view(T& x) {
  return make_view(&x, dtype_of<T>(), {});
}

using Limbs = std::vector<int64_t>;

struct Folded {
  std::vector<double> report = std::vector<double>(kReportFields, 9), metrics;
};
std::vector<double> random_values(int64_t count, double low_exponent, double high_exponent, uint64_t seed) {
  std::vector<double> values(count);
  for (double& v : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(seed >> 11) * 0x1p-53;
    v = std::exp2(low_exponent + (high_exponent - low_exponent) * unit) * (seed >> 63 ? 1 : -1);
  }
  return values;
}

// Each test on every device of the program.
class TrainingStep : public testing::TestWithParam<TestDevice> {
 protected:
  void run(StepCall& call, OpKind op) { call.run(GetParam(), op); }
  Folded fold(std::vector<double> metrics, int64_t divided) {
    Folded f;
    f.metrics = std::move(metrics);
    StepCall call{
        {vector_view(f.metrics), vector_view(f.report)}, {vector_view(f.report), vector_view(f.metrics)}, {{Attr::value, divided}}};
    run(call, OpKind::fold_metrics);
    return f;
  }
  // Running mean and variance at 3 and 7 of the unit; kept: 0.75 of them.
  std::vector<double> fold_statistics(std::vector<double> statistics, int64_t micro_batches, bool skip) {
    std::vector<double> weights(16, 4), report(kReportFields, 0);
    report[kReportSkip] = skip;
    const TensorView state = make_view(statistics.data(), DType::f64, {micro_batches, 2});
    StepCall call{{vector_view(weights), state, vector_view(report)}, {vector_view(weights), state}};
    call.attributes = {{Attr::momentum, 0.75}, {Attr::starts, std::vector<int64_t>{3, 7}}};
    run(call, OpKind::fold_statistics);
    EXPECT_EQ(statistics, std::vector<double>(statistics.size(), 0));
    for (int i = 0; i < 16; ++i)
      if (i != 3 && i != 7) {
        EXPECT_EQ(weights[i], 4);
      }
    return {weights[3], weights[7]};
  }
  template <typename T>
  void add_norm(std::vector<T> shard, std::vector<UnitExtent> extents, int64_t first, double weight, Limbs& limbs, int threads = 1) {
    std::vector<double> report(kReportFields, 0);
    report[kReportWeight] = weight;
    StepCall call{{vector_view(shard), vector_view(report), vector_view(limbs)}, {vector_view(limbs)}};
    call.unit = {extents.data(), static_cast<int>(extents.size()), static_cast<int64_t>(shard.size()), first,
                 static_cast<int64_t>(shard.size())};
    call.threads = threads;
    run(call, OpKind::grad_norm);
  }
  std::vector<double> clip(Limbs& limbs, double largest) {
    std::vector<double> report(kReportFields, 0);
    report[kReportFinite] = 1;
    StepCall call{{vector_view(limbs), vector_view(report)}, {vector_view(report), vector_view(limbs)}};
    call.scalars.clip = largest;
    run(call, OpKind::clip_factor);
    return report;
  }
};
INSTANTIATE_TEST_SUITE_P(All, TrainingStep, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(TrainingStep, RecordLossWritesItsMicroBatch) {
  std::vector<double> metrics(metrics_elements(3), 5);
  float sum = 1.5f, weight = 7;
  StepCall call{{scalar_view(sum), scalar_view(weight), vector_view(metrics)}, {vector_view(metrics)}};
  call.scalars.micro_batch = 2;
  run(call, OpKind::record_loss);
  EXPECT_EQ(metrics, (std::vector<double>{5, 5, 1.5, 5, 5, 7, 5, 5}));
  call.inputs[1] = TensorView{};
  call.scalars.micro_batch = 0;
  run(call, OpKind::record_loss);
  EXPECT_EQ(metrics, (std::vector<double>{1.5, 5, 1.5, 1, 5, 7, 5, 5}));
}

TEST_P(TrainingStep, FillPaddingClearsTheGapsAlone) {
  std::vector<float> buffer(256, 3);
  const UnitExtent extents[] = {{0, 5, 1}, {64, 64, 1}, {128, 1, 1}};
  StepCall call{{}, {vector_view(buffer)}};
  call.unit = {extents, 3, 256, 0, 256};
  run(call, OpKind::fill_padding);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(buffer[i], i < 5 || (i >= 64 && i < 129) ? 3 : 0) << i;
}

TEST_P(TrainingStep, FoldMetricsDividesByTheWeightOfTheWindow) {
  const Folded f = fold({3, 5, 1, 3, 0, 0}, 1);
  EXPECT_EQ(f.report[kReportLoss], 2);
  EXPECT_EQ(f.report[kReportWeight], 4);
  EXPECT_EQ(f.report[kReportSkip], 0);
  EXPECT_EQ(f.report[kReportFinite], 1);
  EXPECT_EQ(f.report[kReportFactor], 1);
  EXPECT_EQ(f.metrics, std::vector<double>(6, 0));
}

TEST_P(TrainingStep, FoldMetricsAFinalSumIsNotDivided) {
  const Folded f = fold({3, 5, 1, 1, 0, 0}, 0);
  EXPECT_EQ(f.report[kReportLoss], 8);
  EXPECT_EQ(f.report[kReportWeight], 1);
}

TEST_P(TrainingStep, FoldMetricsFoldsInOrderOfMicroBatches) {
  const Folded f = fold({1e16, 1, -1e16, 1, 1, 1, 0, 0}, 0);
  EXPECT_EQ(f.report[kReportLoss], ((1e16 + 1) - 1e16));
}

TEST_P(TrainingStep, FoldMetricsSkipsAndSaysWhy) {
  EXPECT_EQ(fold({0, 0, 0, 0, 0, 0}, 1).report[kReportSkip], 1);  // weight 0
  const Folded stop = fold({1, 1, 1, 1, 1, 0}, 1), nan = fold({NAN, 1, 1, 1, 0, 0}, 1);
  EXPECT_EQ(stop.report[kReportSkip], 1);
  EXPECT_EQ(stop.report[kReportStop], 1);
  EXPECT_EQ(nan.report[kReportSkip], 1);
  EXPECT_EQ(nan.report[kReportFinite], 0);
}

TEST_P(TrainingStep, RecordStatisticsWritesTheRowOfItsMicroBatch) {
  std::vector<float> mean = {1, 2}, variance = {3, 4};
  std::vector<double> statistics(8, 9);
  const TensorView state = make_view(statistics.data(), DType::f64, {2, 4});
  StepCall call{{vector_view(mean), vector_view(variance), state}, {state}};
  call.scalars.micro_batch = 1;
  run(call, OpKind::record_statistics);
  EXPECT_EQ(statistics, (std::vector<double>{9, 9, 9, 9, 1, 2, 3, 4}));
}

// Means 1 and 5 with variances 2 and 4: together mean 3, variance 3 + 4.
TEST_P(TrainingStep, FoldStatisticsByTheVarianceOfAllMicroBatchesTogether) {
  EXPECT_EQ(fold_statistics({1, 2, 5, 4}, 2, false), (std::vector<double>{0.75 * 4 + 0.25 * 3, 0.75 * 4 + 0.25 * 7}));
}
TEST_P(TrainingStep, FoldStatisticsASkippedWindowChangesNothing) {
  EXPECT_EQ(fold_statistics({1, 2, 5, 4}, 2, true), (std::vector<double>{4, 4}));
}

TEST_P(TrainingStep, GradNormNormFiveClipOneGivesOneFifth) {
  Limbs limbs(kNormLimbs, 0);
  std::vector<float> gradient(64, 0);
  gradient[0] = 3, gradient[3] = 4;
  add_norm(gradient, {{0, 4, 1}}, 0, 1, limbs);
  const std::vector<double> report = clip(limbs, 1);
  EXPECT_EQ(report[kReportNorm], 5);
  EXPECT_EQ(report[kReportFactor], 0.2);
  EXPECT_EQ(report[kReportClippedNorm], 1);
  EXPECT_EQ(report[kReportSkip], 0);
  EXPECT_EQ(limbs, Limbs(kNormLimbs, 0));
}

TEST_P(TrainingStep, GradNormDividesByTheWeightAndLeavesPaddingOut) {
  Limbs limbs(kNormLimbs, 0);
  std::vector<float> gradient(128, 1e30f);  // padding must not be read
  for (int i = 0; i < 70; ++i) gradient[i] = 2;
  add_norm(gradient, {{0, 70, 1}}, 0, 2, limbs);
  const std::vector<double> report = clip(limbs, 0);
  EXPECT_EQ(report[kReportNorm], std::sqrt(70.0));
  EXPECT_EQ(report[kReportFactor], 1);
}

TEST_P(TrainingStep, GradNormOneShardOrManyInAnyOrderGiveTheSameBits) {
  const std::vector<double> values = random_values(64 * 300, -400, 300, 3);
  Limbs whole(kNormLimbs, 0), parts(kNormLimbs, 0), threaded(kNormLimbs, 0);
  const std::vector<UnitExtent> extents = {{0, 64 * 100 - 7, 1}, {64 * 100, 64 * 200, 1}};
  add_norm(values, extents, 0, 3, whole);
  add_norm(values, extents, 0, 3, threaded, 2);
  for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{200, 300}, {0, 64}, {150, 200}, {64, 150}})
    add_norm(std::vector<double>(values.begin() + begin * 64, values.begin() + end * 64), extents, begin * 64, 3, parts);
  const double norm = clip(whole, 0)[kReportNorm];
  EXPECT_EQ(norm, clip(parts, 0)[kReportNorm]);
  EXPECT_EQ(norm, clip(threaded, 0)[kReportNorm]);
  EXPECT_GT(norm, 1e80);
}

TEST_P(TrainingStep, GradNormTheSumOfBlocksIsExactAndRoundedOnce) {
  Limbs limbs(kNormLimbs, 0);
  for (const double square : {0x1p1000, 0x1p-1000, 0x1p947, 1.0}) {  // 2^1000 + half a unit in its last place + a little more
    std::vector<double> shard(64, 0);
    shard[0] = std::sqrt(square);
    if (square == 0x1p947) shard[0] = 0x1p473, shard[1] = 0x1p473;  // 2^947 exactly
    add_norm(shard, {{0, 64, 1}}, 0, 1, limbs);
  }
  const double norm = clip(limbs, 0)[kReportNorm];
  EXPECT_EQ(norm, std::sqrt(std::nextafter(0x1p1000, INFINITY)));
}

TEST_P(TrainingStep, GradNormLimbsAreTheSameOnEveryDevice) {
  constexpr int64_t kCount = 64 * 700;
  std::vector<double> values = random_values(kCount, -20, 20, 5), report(kReportFields, 0);
  std::vector<float> singles(values.begin(), values.end());
  report[kReportWeight] = 7;
  const UnitExtent extents[] = {{0, 64 * 50 - 3, 1}, {64 * 50, 1, 1}, {64 * 51, 64 * 600, 1}};
  for (const TensorView& gradient : {vector_view(values), vector_view(singles)}) {
    Limbs limbs(kNormLimbs, 0), want(kNormLimbs, 0);
    StepCall call{{gradient, vector_view(report), vector_view(limbs)}, {vector_view(limbs)}};
    call.unit = {extents, 3, kCount, 0, kCount};
    run(call, OpKind::grad_norm);
    call.inputs[2] = call.outputs[0] = vector_view(want);
    call.run(cpu_device("baseline"), OpKind::grad_norm);
    EXPECT_EQ(limbs, want);
  }
}

// Squares below 2^-1022 are no normal doubles.
TEST_P(TrainingStep, GradNormOfTheSmallestNumbers) {
  Limbs limbs(kNormLimbs, 0);
  std::vector<double> gradient(64, 0);
  gradient[5] = gradient[7] = 0x1p-537, gradient[6] = 0x1p-530;  // squares: 2^-1074 twice, 2^-1060
  add_norm(gradient, {{0, 64, 1}}, 0, 1, limbs);
  EXPECT_EQ(limbs[0], (int64_t{1} << (1088 - 1073)) + (int64_t{1} << (1088 - 1060)));
  EXPECT_EQ(clip(limbs, 0)[kReportNorm], std::sqrt(0x1p-1073 + 0x1p-1060));
}

TEST_P(TrainingStep, AMicroBatchOutsideTheMetricsIsFound) {
  std::vector<double> metrics(metrics_elements(3), 5);
  float sum = 1.5f;
  StepCall call{{scalar_view(sum), TensorView{}, vector_view(metrics)}, {vector_view(metrics)}};
  for (const int64_t v : {-1, 3}) {
    call.scalars.micro_batch = v;
    EXPECT_ANY_THROW(run(call, OpKind::record_loss));
    EXPECT_EQ(metrics, std::vector<double>(metrics_elements(3), 5));
  }
}

TEST_P(TrainingStep, GradNormANormThatIsNotFiniteSkipsTheUpdate) {
  for (const float value : {INFINITY, NAN}) {
    Limbs limbs(kNormLimbs, 0);
    std::vector<float> gradient(64, 1);
    gradient[17] = value;
    add_norm(gradient, {{0, 64, 1}}, 0, 1, limbs);
    const std::vector<double> report = clip(limbs, 1);
    EXPECT_EQ(report[kReportSkip], 1);
    EXPECT_EQ(report[kReportFinite], 0);
    EXPECT_EQ(report[kReportFactor], 1);
    EXPECT_EQ(limbs, Limbs(kNormLimbs, 0));
  }
}

}  // namespace
}  // namespace zeroplan
