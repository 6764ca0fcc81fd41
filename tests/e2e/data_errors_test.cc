// Data that does not fit is named before anything is updated; a loss that is not finite stops all ranks with the step.
#include <atomic>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// x[N,3] · w[3,4] → logits, labels[N] in the graph.
TinyModel classifier() {
  TinyModel model;
  model.input("x", DType::f32, {"N", 3})
      .input("labels", DType::i64, {"N"})
      .weight("w", {3, 4}, random_values(12, 1))
      .node("MatMul", {"x", "w"}, {"logits"});
  model.node("SoftmaxCrossEntropyLoss", {"logits", "labels"}, {"loss"}, {{"ignore_index", int64_t{-100}}}).loss();
  return model;
}

HostTensor labels(const std::vector<int64_t>& values) { return HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values); }

std::string opening_error(const TinyCase& tiny) {
  const Plan plan = tiny.compile(sgd_compile(4, 2));
  return error_of([&] { tiny.data(plan); });
}

TEST(Data, MissingInput) {
  const TinyCase tiny(classifier(), {{"x", random_tensor({4, 3}, 1)}});
  EXPECT_THAT(opening_error(tiny), AllOf(HasSubstr("labels.npy"), HasSubstr("missing"), HasSubstr("x.npy")));
}

TEST(Data, AllProblemsTogether) {
  const TinyCase tiny(classifier(), {{"x", random_tensor({4, 5}, 1)}, {"labels", floats({4}, {0, 1, 2, 3})}});
  const std::string message = opening_error(tiny);
  EXPECT_THAT(message, AllOf(HasSubstr("x.npy"), HasSubstr("[4,5]"), HasSubstr("[samples,3]")));
  EXPECT_THAT(message, AllOf(HasSubstr("labels"), HasSubstr("int64")));
}

TEST(Data, UnequalSampleCounts) {
  const TinyCase tiny(classifier(), {{"x", random_tensor({8, 3}, 1)}, {"labels", labels({0, 1, 2, 3})}});
  EXPECT_THAT(opening_error(tiny), AllOf(HasSubstr("labels.npy"), HasSubstr("x.npy"), HasSubstr("8"), HasSubstr("4")));
}

TEST(Data, FewerSamplesThanABatch) {
  const TinyCase tiny(tiny_mixer(3), {{"x", random_tensor({3, 3}, 1)}});
  EXPECT_THAT(error_of([&] { train(tiny, sgd_compile(4), sgd_run(0.1, 1)); }), AllOf(HasSubstr("3 samples"), HasSubstr("4")));
}

// Runs one step; returns the message and whether any rank began the update.
std::pair<std::string, bool> failing_step(const TinyCase& tiny, const CompileOptions& compile, int64_t first_sample = 0) {
  const Plan plan = tiny.compile(compile);
  std::atomic<bool> updated = false;
  ExecutorOptions options;
  options.before_step = [&](int, Program program, int, const Step&) {
    if (program == Program::update) updated = true;
  };
  const auto executor = make_executor(plan, options);
  const auto data = tiny.data(plan);
  const std::string message = error_of([&] { executor->train_step(*data, first_sample, nullptr, scalars_of_step(0, 0.1)); });
  return {message, updated};
}

TEST(Data, LabelOutOfRange) {
  for (const int64_t bad : {4, 1000, -1}) {
    const TinyCase tiny(classifier(), {{"x", random_tensor({8, 3}, 1)}, {"labels", labels({0, 1, 2, 3, -100, 0, bad, 1})}});
    for (const int ranks : {1, 2, 4}) {
      const auto [message, updated] = failing_step(tiny, sgd_compile(4, ranks, 3, 4), 4);
      EXPECT_THAT(message, AllOf(HasSubstr("labels"), HasSubstr("sample 6"), HasSubstr(std::to_string(bad)), HasSubstr("[0, 4)"),
                                 HasSubstr("micro-batch 2")));
      EXPECT_FALSE(updated);
      EXPECT_EQ(failing_step(tiny, sgd_compile(4, ranks, 3, 4), 0).first, "no error");
    }
  }
}

TEST(Data, IndexOutOfRange) {
  TinyModel model;
  model.input("idx", DType::i64, {"N"}).weight("table", {10, 2}, random_values(20, 1)).node("Gather", {"table", "idx"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"idx", labels({-10, 9, -11, 0})}});
  const auto [message, updated] = failing_step(tiny, sgd_compile(4, 2));
  EXPECT_THAT(message, AllOf(HasSubstr("idx"), HasSubstr("sample 2"), HasSubstr("-11")));
  EXPECT_FALSE(updated);
}

TEST(Data, NegativeIndicesCountFromTheEnd) {
  TinyModel model;
  model.input("idx", DType::i64, {"N"}).weight("table", {4, 1}, {1, 2, 3, 4}).node("Gather", {"table", "idx"}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"idx", labels({-1, 3, 0, -4})}});
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4)))
    EXPECT_EQ(values_of(gradients(tiny, options).at("table")), (std::vector<double>{0.5, 0, 0, 0.5})) << describe(options);
}

// log(w·x): a negative x makes a NaN, 0 an infinity.
TinyCase logarithm(double last) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {1}).node("Mul", {"w", "x"}, {"y"}).node("Log", {"y"}, {"z"});
  model.node("ReduceMean", {"z"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", floats({4}, {1, 2, 3, last})}});
}

TEST(Data, LossThatIsNotFiniteUpdatesNothing) {
  for (const double last : {-1.0, 0.0}) {
    const TinyCase tiny = logarithm(last);
    for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4))) {
      const Plan plan = tiny.compile(options);
      const auto executor = make_executor(plan);
      const auto data = tiny.data(plan);
      const std::string message = error_of([&] { executor->train_step(*data, 0, nullptr, scalars_of_step(7, 0.1)); });
      EXPECT_THAT(message, AllOf(HasSubstr("not finite"), HasSubstr("step 8"))) << describe(options);
      EXPECT_EQ(executor->weights(0).get(0), 1) << describe(options);
    }
  }
}

TEST(Data, CheckNanNamesTheFirstOp) {
  ExecutorOptions check;
  check.check_nan = true;
  for (const int ranks : {1, 2, 4}) {
    const std::string message = error_of([&] { train(logarithm(-1), sgd_compile(4, ranks, 3, 4), sgd_run(0.1, 1), check); });
    EXPECT_THAT(message,
                AllOf(HasSubstr("NaN"), HasSubstr("node_z"), HasSubstr("step 1"), HasSubstr("micro-batch 3"), ContainsRegex("rank [0-3]")));
    EXPECT_NO_THROW(train(logarithm(4), sgd_compile(4, ranks, 3, 4), sgd_run(0.1, 1), check));
  }
}

TEST(Data, CheckNanNamesTheInput) {
  HostTensor x = random_tensor({4, 2}, 1);
  x.set(5, std::numeric_limits<double>::quiet_NaN());
  ExecutorOptions check;
  check.check_nan = true;
  const TinyCase tiny(tiny_linear({2}, {1, 1}), {{"x", x}});
  EXPECT_THAT(error_of([&] { train(tiny, sgd_compile(4, 2, 3, 4), sgd_run(0.1, 1), check); }),
              AllOf(HasSubstr("data of input x"), HasSubstr("element 1"), HasSubstr("micro-batch 2")));
}

TEST(T13, AnEvaluationWithoutALabelIsNoPerfectLoss) {
  const TinyCase none(classifier(), {{"x", random_tensor({4, 3}, 1)}, {"labels", labels({-100, -100, -100, -100})}});
  CompileOptions options = sgd_compile(4, 2, 3, 2);
  options.eval = true;
  const Plan plan = none.compile(options);
  const auto executor = make_executor(plan);
  const EvalReport report = executor->evaluate(*none.data(plan));
  EXPECT_EQ(report.weight, 0);
  EXPECT_TRUE(std::isnan(report.loss)) << report.loss;
}

// A window without a valid token changes nothing and says so.
TEST(T13, WindowOfWeightZero) {
  const TinyCase none(classifier(), {{"x", random_tensor({4, 3}, 1)}, {"labels", labels({-100, -100, -100, -100})}});
  const TinyCase half(classifier(), {{"x", random_tensor({4, 3}, 1)}, {"labels", labels({1, 2, -100, -100})}});
  const HostTensor start = floats({3, 4}, random_values(12, 1));
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 2), {1, 2})) {
    const TinyRun run = train(none, options, sgd_run(0.1, 1));
    EXPECT_TRUE(run.steps.at(0).skipped) << describe(options);
    EXPECT_EQ(run.steps.at(0).weight, 0);
    EXPECT_TRUE(run.weights.at("w") == start) << describe(options);
    const TinyRun counted = train(half, options, sgd_run(0.1, 1));
    EXPECT_EQ(counted.steps.at(0).weight, 2);
    EXPECT_TRUE(std::isfinite(counted.losses().at(0)));
    EXPECT_FALSE(counted.weights.at("w") == start) << describe(options);
  }
}

TEST(Stop, EndsAtAStepBorder) {
  const TinyCase tiny(tiny_linear({2}, {1, 1}), {{"x", random_tensor({8, 2}, 1)}});
  for (const int ranks : {1, 2, 4}) {
    const Plan plan = tiny.compile(sgd_compile(4, ranks, 3, 4));
    const auto executor = make_executor(plan), other = make_executor(plan);
    const auto data = tiny.data(plan);
    const RunResult result = run_training(*executor, *data, nullptr, sgd_run(0.1, 100), [&](const RunEvent& event) {
      if (event.step->step == 3) executor->request_stop();
    });
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(result.steps_done, 3);
    const RunResult whole = run_training(*other, *data, nullptr, sgd_run(0.1, 3), [](const RunEvent&) {});
    EXPECT_FALSE(whole.stopped);
    EXPECT_TRUE(all_weights(*executor) == all_weights(*other));
    // The stop was for that run: the next one goes on.
    EXPECT_EQ(run_training(*executor, *data, nullptr, sgd_run(0.1, 2), [](const RunEvent&) {}).steps_done, 2);
  }
}

}  // namespace
}  // namespace zeroplan
