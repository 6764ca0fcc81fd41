// Disagreement and failure: every message says where, and no rank is left behind.
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/dump.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// x·FIRST·SECOND → mean; w1 and w2 are equally large.
TinyCase two_in_order(const std::string& first, const std::string& second) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 8});
  for (const std::string name : {"w1", "w2"}) model.weight(name, {8, 8}, random_values(64, name[1]));
  model.node("MatMul", {"x", first}, {"h"}).node("MatMul", {"h", second}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model, {{"x", random_tensor({4, 8}, 1)}});
}

std::string refusal(const Plan& a, const Plan& b) {
  return error_of([&] { Executor({std::make_shared<const Plan>(a), std::make_shared<const Plan>(b)}, open_weights(a), {}); });
}

TEST(T04, SwappedWeightsAreRefused) {
  CompileOptions options = sgd_compile(4, 2);
  options.unit_patterns = {"w\\d"};
  const TinyCase ours = two_in_order("w1", "w2"), theirs = two_in_order("w2", "w1");
  const Plan a = ours.compile(options);
  Plan b = theirs.compile(options);
  EXPECT_THAT(refusal(a, b), AllOf(HasSubstr("ranks 0 and 1"), HasSubstr("first entry that differs"), HasSubstr(a.header.model_digest)));
  // As if the files had passed for one: the first step with another parameter is named.
  b.header.model_digest = a.header.model_digest;
  EXPECT_THAT(refusal(a, b), AllOf(HasSubstr("first entry that differs"), HasSubstr("w1"), HasSubstr("w2")));
}

TEST(T04, AnotherOptionIsRefused) {
  const TinyCase tiny = two_in_order("w1", "w2");
  const Plan a = tiny.compile(sgd_compile(4, 2, 3)), b = tiny.compile(sgd_compile(4, 2, 2));
  EXPECT_THAT(refusal(a, b), HasSubstr("stage 2"));
  EXPECT_EQ(refusal(a, a), "no error");
}

// Runs everything that the plan can do.
void run_all(const TinyCase& tiny, const Plan& plan, const ExecutorOptions& options) {
  const auto executor = make_executor(plan, options);
  const auto data = tiny.data(plan);
  executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1));
  executor->evaluate(*data);
  executor->export_parameters([](int, const void*) {});
}

void expect_place_in_message(const TinyCase& tiny, const Plan& plan, Program program, int index, const Step& step) {
  ExecutorOptions options;
  options.before_step = [&](int rank, Program at, int i, const Step&) {
    if (rank == 1 && at == program && i == index) throw std::runtime_error("injected fault");
  };
  const std::string message = error_of([&] { run_all(tiny, plan, options); });
  const bool named = step.kind == StepKind::kernel || step.kind == StepKind::host;
  EXPECT_THAT(message, HasSubstr("injected fault"));
  EXPECT_THAT(message, HasSubstr("rank 1"));
  EXPECT_THAT(message, ContainsRegex(program == Program::load ? "step 0," : "step 1,"));
  EXPECT_THAT(message, ContainsRegex("micro-batch [0-9]"));
  EXPECT_THAT(message, HasSubstr(fmt::format("{}[{}] ", program_name(program), index)));
  EXPECT_THAT(message,
              HasSubstr(named ? describe_step(plan, step).substr(0, describe_step(plan, step).find(' ')) : step_kind_name(step.kind)));
  EXPECT_THAT(message, ContainsRegex("unit [a-z]"));
  EXPECT_THAT(message, ContainsRegex("parameters? [a-z]"));
  if (step.unit == kNone) return;
  EXPECT_THAT(message, HasSubstr("unit " + plan.units[step.unit].name));
  for (const UnitParameter& p : plan.units[step.unit].parameters)
    EXPECT_THAT(message, HasSubstr(plan.parameters[p.parameter].parameter.name));
}

TEST(T32, EveryStepNamesItsPlace) {
  const TinyCase tiny(tiny_mlp(2, 4), {{"x", random_tensor({4, 4}, 1)}, {"t", random_tensor({4, 4}, 2)}});
  CompileOptions options;
  options.batch = 4;
  options.ranks = 2;
  options.eval = true;
  options.unit_patterns = {"layers\\.\\d"};
  std::set<StepKind> kinds;
  for (const int stage : {0, 3}) {
    options.stage = stage;
    const Plan plan = tiny.compile(options);
    ASSERT_EQ(plan.programs.size(), static_cast<size_t>(kPrograms));
    for (const PlanProgram& program : plan.programs)
      for (size_t i = 0; i < program.steps.size(); ++i) {
        kinds.insert(program.steps[i].kind);
        SCOPED_TRACE(fmt::format("stage {} {} step {}", stage, program_name(program.program), i));
        expect_place_in_message(tiny, plan, program.program, static_cast<int>(i), program.steps[i]);
      }
  }
  for (const StepKind kind :
       {StepKind::kernel, StepKind::all_gather, StepKind::reduce_scatter, StepKind::all_reduce, StepKind::free, StepKind::host})
    EXPECT_TRUE(kinds.contains(kind)) << step_kind_name(kind);
}

// The failure of one rank ends the others while they sit in a collective, and stays what the executor says.
TEST(T32, AFailedExecutorKeepsSayingWhy) {
  const TinyCase tiny(tiny_mlp(2, 4), {{"x", random_tensor({4, 4}, 1)}, {"t", random_tensor({4, 4}, 2)}});
  for (const int ranks : {2, 4}) {
    const Plan plan = tiny.compile(sgd_compile(4, ranks));
    ExecutorOptions options;
    options.after_step = [](int rank, Program program, int, const Step& step) {
      if (rank == 1 && program == Program::micro_step && step.kind == StepKind::kernel) throw std::runtime_error("injected fault");
    };
    const auto executor = make_executor(plan, options);
    const auto data = tiny.data(plan);
    const std::string first = error_of([&] { executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1)); });
    EXPECT_THAT(first, AllOf(HasSubstr("injected fault"), HasSubstr("rank 1")));
    EXPECT_EQ(error_of([&] { executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.1)); }), first);
    EXPECT_EQ(error_of([&] { executor->weights(0); }), first);
  }
}

}  // namespace
}  // namespace zeroplan
