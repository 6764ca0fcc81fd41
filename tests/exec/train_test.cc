// Training, evaluation and the numbers: the hand-made chain against a dense loop, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/exec/chain_plan.h"

namespace zeroplan {
namespace {

using test::ChainData;
using test::ChainOptions;
using ::testing::HasSubstr;

ExecutorOptions chain_options() {
  ExecutorOptions options;
  options.backend = test::chain_backend;
  options.collective_deadline_ms = 20000;
  return options;
}

std::unique_ptr<Executor> make(const ChainOptions& o, ExecutorOptions options = chain_options()) {
  return std::make_unique<Executor>(std::vector{test::make_chain_plan(o)}, test::chain_weights(), options);
}

RunScalars scalars(int step, double lr = 0.05) {
  RunScalars s;
  s.step = step + 1;
  s.lr = lr;
  return s;
}

StepReport train(Executor& executor, const ChainOptions& o, int steps) {
  ChainData data(1000, o.width);
  StepReport report;
  for (int s = 0; s < steps; ++s) report = executor.train_step(data, s * o.micro_batches * o.samples, nullptr, scalars(s));
  return report;
}

template <typename T>
std::vector<T> values(const HostTensor& t) {
  return {t.as<T>(), t.as<T>() + t.count()};
}

class TrainTest : public ::testing::TestWithParam<std::tuple<int, int, int>> {};  // ranks, micro-batches, prefetch
INSTANTIATE_TEST_SUITE_P(Chain, TrainTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Values(1, 4, 5), ::testing::Values(0, 1, 2)));

TEST_P(TrainTest, EqualsTheDenseLoopBitByBit) {
  const auto [ranks, micro_batches, prefetch] = GetParam();
  const ChainOptions o{.ranks = ranks, .micro_batches = micro_batches, .prefetch = prefetch};
  auto executor = make(o);
  const StepReport report = train(*executor, o, 4);
  const auto dense = test::run_dense(o, 4, 0.05);
  EXPECT_EQ(report.loss, dense.loss);
  EXPECT_EQ(report.weight, dense.weight);
  EXPECT_EQ(report.step, 4);
  EXPECT_FALSE(report.skipped);
  for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(values<float>(executor->weights(p)), dense.weights[p]) << "parameter " << p;
}

TEST_P(TrainTest, AccumulatedGradientsEqualTheDenseLoop) {
  const auto [ranks, micro_batches, prefetch] = GetParam();
  const ChainOptions o{.ranks = ranks, .micro_batches = micro_batches, .prefetch = prefetch};
  auto executor = make(o);
  ChainData data(1000, o.width);
  const auto dense = test::run_dense(o, 1, 0.05, false);
  for (int again = 0; again < 2; ++again) {  // a second window starts from zero
    const StepReport report = executor->accumulate(data, 0, nullptr, scalars(0));
    EXPECT_EQ(report.loss, dense.loss);
    for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(values<float>(executor->gradient(p)), dense.gradients[p]);
    for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(executor->weights(p).get(5), test::chain_weight(p, 5));
  }
  train(*executor, o, 1);  // what accumulate left does not count
  const auto updated = test::run_dense(o, 1, 0.05);
  for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(values<float>(executor->weights(p)), updated.weights[p]);
}

TEST_P(TrainTest, SaveGivesTheWeights) {
  const auto [ranks, micro_batches, prefetch] = GetParam();
  const ChainOptions o{.ranks = ranks, .micro_batches = micro_batches, .prefetch = prefetch};
  auto executor = make(o);
  train(*executor, o, 2);
  std::map<int, std::vector<float>> saved;
  executor->export_parameters([&](int p, const void* data) {
    const auto* f = static_cast<const float*>(data);
    EXPECT_TRUE(saved.emplace(p, std::vector<float>(f, f + o.width)).second);
  });
  ASSERT_EQ(saved.size(), 2u * o.units);
  for (auto& [p, bytes] : saved) EXPECT_EQ(bytes, values<float>(executor->weights(p)));
}

TEST(Train, WhatTheTakerOfASaveThrowsEndsNoRank) {
  const ChainOptions o{.ranks = 3};
  auto executor = make(o);
  int calls = 0;
  const auto full = [&](int, const void*) {
    if (++calls == 2) throw Error("the disk is full");
  };
  EXPECT_THROW(executor->export_parameters(full), Error);
  EXPECT_EQ(calls, 2);
  train(*executor, o, 1);
  EXPECT_EQ(values<float>(executor->weights(1)), test::run_dense(o, 1, 0.05).weights[1]);
}

TEST(Train, EvaluationFoldsAllWholeMicroBatches) {
  double reference = 0;
  for (int ranks : {1, 2, 3, 4}) {
    const ChainOptions o{.ranks = ranks, .micro_batches = 3, .samples = 2};
    auto executor = make(o);
    ChainData data(17, o.width);
    for (int again = 0; again < 2; ++again) {
      const EvalReport report = executor->evaluate(data);
      EXPECT_EQ(report.samples, 16);
      EXPECT_EQ(report.weight, 16);
      if (reference == 0) reference = report.loss;
      EXPECT_EQ(report.loss, reference);
    }
    train(*executor, o, 1);
    EXPECT_NE(executor->evaluate(data).loss, reference);
  }
  // Against a window of eight micro-batches of the dense loop.
  EXPECT_EQ(reference, test::run_dense({.micro_batches = 8, .samples = 2}, 1, 0, false).loss);
}

TEST(Train, AnOrderMapsPositionsToSamples) {
  const ChainOptions o{.ranks = 2, .micro_batches = 2, .samples = 2};
  auto straight = make(o), shuffled = make(o);
  ChainData data(100, o.width);
  std::vector<int64_t> order(100);
  for (int i = 0; i < 100; ++i) order[i] = i % 8 < 4 ? i + 4 : i - 4;
  shuffled->train_step(data, 0, order.data(), scalars(0));
  straight->train_step(data, 4, nullptr, scalars(0));
  for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(straight->weights(p), shuffled->weights(p));
}

TEST(Train, AStopUpdatesNothingOnAnyRank) {
  const ChainOptions o{.ranks = 3};
  auto executor = make(o);
  executor->request_stop();
  const StepReport report = train(*executor, o, 1);
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(report.skipped);
  for (int p = 0; p < 2 * o.units; ++p) EXPECT_EQ(executor->weights(p).get(3), test::chain_weight(p, 3));
  EXPECT_FALSE(train(*executor, o, 1).stopped);
  EXPECT_NE(executor->weights(0).get(3), test::chain_weight(0, 3));
}

TEST(Train, DecayMultipliersReachTheKernels) {
  const ChainOptions o{.ranks = 2};
  auto executor = make(o);
  std::vector<double> multipliers(2 * o.units, 1.0);
  multipliers[2] = 0;  // the chain's kernel scales the learning rate with it
  executor->set_decay(multipliers);
  train(*executor, o, 1);
  EXPECT_EQ(executor->weights(2).get(3), test::chain_weight(2, 3));
  EXPECT_NE(executor->weights(3).get(3), test::chain_weight(3, 3));
  EXPECT_THROW(executor->set_decay({1.0}), Error);
}

TEST(Train, TimesAreThoseOfOneRank) {
  const ChainOptions o{.ranks = 2};
  auto executor = make(o);
  const StepReport report = train(*executor, o, 1);
  EXPECT_GT(report.step_ms, 0);
  EXPECT_GT(report.compute_ms, 0);
  EXPECT_GT(report.exposed_comm_ms, 0);
  EXPECT_LE(report.compute_ms + report.data_ms, report.step_ms);
  EXPECT_TRUE(report.slowest_rank == 0 || report.slowest_rank == 1);
}

TEST(Train, TheTraceHasEveryStepOnce) {
  const ChainOptions o{.ranks = 2, .micro_batches = 3};
  ExecutorOptions options = chain_options();
  options.trace = true;
  auto executor = make(o, options);
  executor->take_trace();
  train(*executor, o, 1);
  std::map<std::tuple<int, Program, int64_t, int>, int> seen;
  for (const TraceEvent& e : executor->take_trace()) {
    EXPECT_LE(e.begin_ns, e.end_ns);
    EXPECT_EQ(e.train_step, 1);
    ++seen[{e.rank, e.program, e.micro_batch, e.step_index}];
  }
  const auto& steps = find_program(executor->plan(), Program::micro_step)->steps;
  for (int v = 0; v < 3; ++v)
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ((seen[{v % 2, Program::micro_step, v, static_cast<int>(i)}]), 1);
  EXPECT_TRUE(executor->take_trace().empty());
}

TEST(Train, AnEvaluationCarriesTheStepBeforeIt) {
  const ChainOptions o{.ranks = 2};
  ExecutorOptions options = chain_options();
  options.trace = true;
  auto executor = make(o, options);
  train(*executor, o, 2);
  executor->evaluate(ChainData(o.micro_batches * o.samples, o.width));
  int64_t events = 0;
  for (const TraceEvent& e : executor->take_trace()) {
    if (e.program != Program::eval_step && e.program != Program::eval_end) continue;
    EXPECT_EQ(e.train_step, 2);
    ++events;
  }
  EXPECT_GT(events, 0);
}

// Events per optimizer step of each stream of each rank.
std::map<std::pair<int, StreamKind>, std::map<int64_t, int>> events_by_step(Executor& executor) {
  std::map<std::pair<int, StreamKind>, std::map<int64_t, int>> counts;
  for (const TraceEvent& e : executor.take_trace())
    if (e.program == Program::micro_step || e.program == Program::update)
      ++counts[{e.rank, find_program(executor.plan(), e.program)->steps[e.step_index].stream}][e.train_step];
  return counts;
}

// Trains `steps` steps and returns the last whose events are there: the same, and whole, on every stream.
int64_t last_traced_step(int steps, int64_t trace_steps) {
  const ChainOptions o{.ranks = 2, .micro_batches = 2};
  ExecutorOptions options = chain_options();
  options.trace = true;
  options.trace_steps = trace_steps;
  auto executor = make(o, options);
  const ChainData data(1000, o.width);
  for (int s = 0; s < steps; ++s) executor->train_step(data, 0, nullptr, scalars(s, 0));
  int64_t last = 0;
  for (const auto& [stream, counts] : events_by_step(*executor)) {
    EXPECT_TRUE(last == 0 || last == counts.rbegin()->first);
    last = counts.rbegin()->first;
    EXPECT_EQ(counts.begin()->first, 1);
    EXPECT_EQ(counts.size(), static_cast<size_t>(last));
    for (const auto& [step, events] : counts) EXPECT_EQ(events, counts.at(1)) << "step " << step;
  }
  return last;
}

// The fullest stream alone decides where a long trace ends: the others have room for more.
TEST(Train, ATraceEndsWithOneWholeStepOnAllStreams) {
  size_t most = 0;
  const auto plan = test::make_chain_plan({.ranks = 2, .micro_batches = 2});
  for (const StreamKind stream : {StreamKind::compute, StreamKind::gather, StreamKind::reduce}) {
    size_t events = 0;
    for (const Program program : {Program::micro_step, Program::update})
      for (const Step& step : find_program(*plan, program)->steps) events += step.stream == stream;
    most = std::max(most, events);
  }
  const int fitting = (1 << 16) / static_cast<int>(most);
  EXPECT_NEAR(last_traced_step(fitting + 20, 0), fitting, 1);
  EXPECT_EQ(last_traced_step(fitting + 20, fitting + 10), fitting + 10);
  EXPECT_EQ(last_traced_step(5, 3), 3);
}

// Their bytes are other programs' then. Accumulated ones, with two rounds, stay.
TEST(Train, CarriedGradientsAreThereUntilAnythingElseIsRun) {
  for (const int64_t micro_batches : {2, 4}) {
    const ChainOptions o{.ranks = 2, .micro_batches = micro_batches};
    auto executor = make(o);
    ChainData data(1000, o.width);
    executor->accumulate(data, 0, nullptr, scalars(0));
    const HostTensor gradient = executor->gradient(0);
    executor->evaluate(data);
    if (micro_batches == 2)
      EXPECT_THROW(executor->gradient(0), Error);
    else
      EXPECT_EQ(executor->gradient(0), gradient);
    executor->accumulate(data, 0, nullptr, scalars(0));
    EXPECT_EQ(executor->gradient(0), gradient);
  }
}

TEST(Train, FrozenAndUnknownParametersAreRefused) {
  auto executor = make({});
  EXPECT_THROW(executor->gradient(99), Error);
  EXPECT_THROW(executor->weights(-1), Error);
}

}  // namespace
}  // namespace zeroplan
