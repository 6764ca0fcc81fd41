// One set of final bits, whatever is delayed, prefetched, cut into units or evaluated in between.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

constexpr int64_t kWidth = 6;

TinyCase mlp_case(int layers, int64_t samples, bool integers) {
  const auto values = [&](int seed) {
    return floats({samples, kWidth}, integers ? random_integers(samples * kWidth, seed, 2) : random_values(samples * kWidth, seed));
  };
  return TinyCase(tiny_mlp(layers, kWidth, integers), {{"x", values(11)}, {"t", values(12)}});
}

// Sleeps before about one step in 16, another one in every run.
StepHook random_delays(uint64_t seed) {
  const auto calls = std::make_shared<std::atomic<uint64_t>>(seed);  // shared: hooks are copied
  return [calls](int, Program, int, const Step&) {
    const uint64_t z = (*calls += 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    if (z >> 60 == 0) std::this_thread::sleep_for(std::chrono::microseconds((z >> 52) & 0xff));
  };
}

void expect_one_set_of_bits(bool integers, double lr, const std::vector<int>& rank_counts) {
  constexpr int kLayers = 6;
  const int64_t layer_bytes = (kWidth * kWidth + kWidth) * 4;
  const TinyCase tiny = mlp_case(kLayers, 16, integers);
  const TinyRun reference = train(tiny, sgd_compile(4, 1, 0, 4), sgd_run(lr, 50));
  EXPECT_NE(reference.losses().front(), reference.losses().back());
  EXPECT_FALSE(reference.weights == train(tiny, sgd_compile(4, 1, 0, 4), sgd_run(lr, 49)).weights);
  uint64_t seed = 1;
  for (const int64_t unit_bytes : {layer_bytes, 2 * layer_bytes, int64_t{1} << 20})
    for (const int prefetch : {0, 1, 3})
      for (const int ranks : rank_counts) {
        CompileOptions options = sgd_compile(4, ranks, 3, 4);
        options.unit_bytes = unit_bytes;
        options.prefetch = prefetch;
        ExecutorOptions delays;
        delays.before_step = random_delays(++seed);
        delays.after_step = random_delays(++seed);
        const TinyRun run = train(tiny, options, sgd_run(lr, 50), delays);
        EXPECT_EQ(run.losses(), reference.losses()) << describe(options);
        EXPECT_TRUE(run.weights == reference.weights) << describe(options);
      }
}

TEST(T19, SmallIntegersWithRandomDelays) { expect_one_set_of_bits(true, 0x1p-14, {1, 2, 4}); }
TEST(T19, AnyDataWithRandomDelays) { expect_one_set_of_bits(false, 0.05, {3}); }

TEST(T19, UnitSizesAreWhatTheTestMeans) {
  const TinyCase tiny = mlp_case(6, 16, true);
  CompileOptions options = sgd_compile(4);
  options.unit_bytes = 1 << 20;
  EXPECT_EQ(tiny.compile(options).units.size(), 1u);
  options.unit_bytes = (kWidth * kWidth + kWidth) * 4;
  const size_t units_of_a_layer = tiny.compile(options).units.size();
  EXPECT_GE(units_of_a_layer, 6u);
  options.unit_bytes *= 2;
  EXPECT_LT(tiny.compile(options).units.size(), units_of_a_layer);
}

// (relu(x·w0 + b0)·w1 + b1 − t)², mean over samples and width.
double plain_loss(const Weights& weights, const HostTensor& x, const HostTensor& t, int64_t samples) {
  double sum = 0;
  for (int64_t s = 0; s < samples; ++s) {
    std::vector<double> h(kWidth), y(kWidth);
    for (int64_t j = 0; j < kWidth; ++j) {
      h[j] = weights.at("layers.0.bias").get(j);
      for (int64_t i = 0; i < kWidth; ++i) h[j] += x.get(s * kWidth + i) * weights.at("layers.0.weight").get(i * kWidth + j);
      h[j] = std::max(h[j], 0.0);
    }
    for (int64_t j = 0; j < kWidth; ++j) {
      y[j] = weights.at("layers.1.bias").get(j) - t.get(s * kWidth + j);
      for (int64_t i = 0; i < kWidth; ++i) y[j] += h[i] * weights.at("layers.1.weight").get(i * kWidth + j);
      sum += y[j] * y[j];
    }
  }
  return sum / static_cast<double>(samples * kWidth);
}

TEST(T05, EvaluationInBetweenChangesNothing) {
  constexpr int64_t kEvalSamples = 6;
  const TinyCase tiny = mlp_case(2, 16, false);
  const HostTensor x = random_tensor({kEvalSamples, kWidth}, 31), t = random_tensor({kEvalSamples, kWidth}, 32);
  const TinyCase eval_case(tiny_mlp(2, kWidth), {{"x", x}, {"t", t}});
  CompileOptions base;  // AdamW
  base.batch = 4;
  base.micro_batches = 4;
  base.eval = true;
  for (const CompileOptions& options : everywhere(base)) {
    const Plan plan = tiny.compile(options);
    const auto data = tiny.data(plan), eval_data = eval_case.data(plan);
    const auto with = make_executor(plan), without = make_executor(plan);
    for (int64_t step = 0; step < 6; ++step) {
      const RunScalars scalars = scalars_of_step(step, 0.01);
      const int64_t first = step % 4 * 4;
      EXPECT_EQ(with->train_step(*data, first, nullptr, scalars).loss, without->train_step(*data, first, nullptr, scalars).loss);
      if (step != 2) continue;
      const double plain = plain_loss(all_weights(*with), x, t, kEvalSamples);
      for (int i = 0; i < 2; ++i) {
        const EvalReport report = with->evaluate(*eval_data);
        EXPECT_EQ(report.samples, kEvalSamples);
        EXPECT_NEAR(report.loss, plain, 1e-6) << describe(options);
      }
    }
    EXPECT_TRUE(all_weights(*with) == all_weights(*without)) << describe(options);
  }
}

TEST(T05, EvaluationNeedsItsProgram) {
  const TinyCase tiny = mlp_case(1, 4, false);
  const Plan plan = tiny.compile(sgd_compile(4));
  const auto executor = make_executor(plan);
  const auto data = tiny.data(plan);
  EXPECT_NE(error_of([&] { executor->evaluate(*data); }).find("evaluation"), std::string::npos);
}

TEST(T05, EvalEverySteps) {
  const TinyCase tiny = mlp_case(2, 16, false);
  CompileOptions options = sgd_compile(4, 2);
  options.eval = true;
  const Plan plan = tiny.compile(options);
  const auto executor = make_executor(plan);
  const auto data = tiny.data(plan);
  RunOptions run = sgd_run(0.05, 5);
  run.eval_every = 2;
  std::vector<int64_t> evaluated;
  const RunResult result = run_training(*executor, *data, data.get(), run, [&](const RunEvent& event) {
    if (event.eval) evaluated.push_back(event.step->step);
  });
  EXPECT_EQ(evaluated, (std::vector<int64_t>{2, 4, 5}));
  ASSERT_TRUE(result.last_eval.has_value());
  EXPECT_EQ(result.last_eval->samples, 16);
}

}  // namespace
}  // namespace zeroplan
