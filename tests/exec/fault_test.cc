// Failures through the hooks and interfaces: every rank ends, and the message says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "tests/error_of.h"
#include "tests/exec/chain_plan.h"

namespace zeroplan {
namespace {

using test::ChainData;
using test::ChainOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

ExecutorOptions chain_options(int64_t deadline_ms = 20000) {
  ExecutorOptions options;
  options.backend = test::chain_backend;
  options.collective_deadline_ms = deadline_ms;
  return options;
}

std::unique_ptr<Executor> make(const ChainOptions& o, ExecutorOptions options) {
  return std::make_unique<Executor>(std::vector{test::make_chain_plan(o)}, test::chain_weights(), std::move(options));
}

StepReport step(Executor& executor, const ChainOptions& o, int64_t number = 7) {
  ChainData data(1000, o.width);
  RunScalars scalars;
  scalars.step = number;
  return executor.train_step(data, 0, nullptr, scalars);
}

// The first step of the kind and op, in the order of programs that a training step runs.
struct Target {
  Program program;
  int index;
};
Target find_step(const Plan& plan, StepKind kind, OpKind op) {
  for (Program program : {Program::micro_step, Program::update}) {
    const auto& steps = find_program(plan, program)->steps;
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i].kind == kind && steps[i].op == op) return {program, static_cast<int>(i)};
  }
  ADD_FAILURE() << "the plan has no such step";
  return {};
}

struct FaultCase {
  StepKind kind;
  OpKind op;
  const char* name;  // in the message
  const char* unit;
  const char* parameters;
};
const FaultCase kFaults[] = {
    {StepKind::all_gather, OpKind::gather_weights, "all_gather", "unit block.0", "parameters block.0.scale, block.0.shift"},
    {StepKind::kernel, OpKind::mul, "mul", "unit block.0", "parameters block.0.scale, block.0.shift"},
    {StepKind::free, OpKind::free_unit, "free", "unit block.0", "block.0.scale, block.0.shift"},
    {StepKind::kernel, OpKind::record_loss, "record_loss", "unit none", "parameter none"},
    {StepKind::kernel, OpKind::silu_grad, "silu_grad", "unit block.2", "parameter block.2.scale"},
    {StepKind::kernel, OpKind::fill_padding, "fill_padding", "unit block.2", "block.2.scale, block.2.shift"},
    {StepKind::reduce_scatter, OpKind::reduce_scatter, "reduce_scatter", "unit block.2", "block.2.scale, block.2.shift"},
    {StepKind::all_reduce, OpKind::all_reduce, "all_reduce", "unit none", "parameter none"},
    {StepKind::kernel, OpKind::optimizer_update, "optimizer_update", "unit block.0", "block.0.scale, block.0.shift"},
};

class FaultTest : public ::testing::TestWithParam<std::tuple<FaultCase, int, bool>> {};  // case, ranks, before
INSTANTIATE_TEST_SUITE_P(EveryStepKind, FaultTest,
                         ::testing::Combine(::testing::ValuesIn(kFaults), ::testing::Values(1, 3), ::testing::Bool()));

TEST_P(FaultTest, NamesRankStepMicroBatchOpUnitAndParameters) {
  const auto& [fault, ranks, before] = GetParam();
  const ChainOptions o{.ranks = ranks, .micro_batches = 4};
  const int bad_rank = ranks - 1;
  const Target target = find_step(*test::make_chain_plan(o), fault.kind, fault.op);
  ExecutorOptions options = chain_options();
  (before ? options.before_step : options.after_step) = [&](int rank, Program program, int index, const Step&) {
    if (rank == bad_rank && program == target.program && index == target.index) throw std::runtime_error("injected");
  };
  auto executor = make(o, options);
  const std::string message = error_of([&] { step(*executor, o); });
  EXPECT_THAT(message, HasSubstr("injected"));
  EXPECT_THAT(message, HasSubstr("rank " + std::to_string(bad_rank)));
  EXPECT_THAT(message, HasSubstr("step 7"));
  EXPECT_THAT(message, HasSubstr("micro-batch " + std::to_string(target.program == Program::update ? 3 : bad_rank)));
  EXPECT_THAT(message, HasSubstr(std::string(program_name(target.program)) + "[" + std::to_string(target.index) + "] " + fault.name));
  EXPECT_THAT(message, HasSubstr(fault.unit));
  EXPECT_THAT(message, HasSubstr(fault.parameters));
  EXPECT_EQ(error_of([&] { step(*executor, o); }), message) << "a failed executor repeats its failure";
  EXPECT_EQ(error_of([&] { executor->weights(0); }), message);
}

TEST(Fault, TheFirstFailureWins) {
  const ChainOptions o{.ranks = 4};
  ExecutorOptions options = chain_options();
  options.before_step = [](int rank, Program program, int index, const Step&) {
    if (program != Program::micro_step || index < 3) return;
    if (rank == 2) throw std::runtime_error("the cause");
    std::this_thread::sleep_for(50ms);
    throw std::runtime_error("later");
  };
  auto executor = make(o, options);
  EXPECT_THAT(error_of([&] { step(*executor, o); }), AllOf(HasSubstr("the cause"), HasSubstr("rank 2"), Not(HasSubstr("later"))));
}

// Holds whoever passes until it is opened. Shared with a thread that outlives the executor.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(Fault, ABlockedRankIsNamedAndNobodyHangs) {
  auto gate = std::make_shared<Gate>();
  const ChainOptions o{.ranks = 3};
  const Target target = find_step(*test::make_chain_plan(o), StepKind::kernel, OpKind::record_loss);
  ExecutorOptions options = chain_options(1000);
  options.before_step = [gate, target](int rank, Program program, int index, const Step&) {
    if (rank == 1 && program == target.program && index == target.index) gate->pass();
  };
  auto executor = make(o, options);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of([&] { step(*executor, o); }),
              AllOf(HasSubstr("rank 1 did not come"), HasSubstr("1000 ms"),
                    HasSubstr("rank 1 is in micro_step step " + std::to_string(target.index) + " (record_loss)"), HasSubstr("step 7")));
  executor.reset();  // with rank 1 still blocked
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  gate->open();
}

class BadData : public DataSource {
 public:
  int64_t samples() const override { return 1000; }
  void read(int, int64_t first, int64_t, const int64_t*, const TensorView& to) const override {
    if (first == 6) throw Error("input x, sample 6: label out of range: 12 is not in [0, 10)");
    for (int64_t i = 0; i < to.elements(); ++i) to.as<float>()[i] = 1;
  }
};

TEST(Fault, BadDataEndsAllRanksBeforeTheUpdate) {
  const ChainOptions o{.ranks = 2, .micro_batches = 4, .samples = 3};
  std::atomic<bool> updated{false};
  ExecutorOptions options = chain_options();
  options.before_step = [&](int, Program program, int, const Step&) {
    if (program == Program::update) updated = true;
  };
  auto executor = make(o, options);
  RunScalars scalars;
  scalars.step = 1;
  EXPECT_THAT(error_of([&] { executor->train_step(BadData{}, 0, nullptr, scalars); }),
              AllOf(HasSubstr("label out of range"), HasSubstr("sample 6"), HasSubstr("rank 0, step 1, micro-batch 2"),
                    HasSubstr("read of input x")));
  EXPECT_FALSE(updated);
}

TEST(Fault, AFailingLoadNamesTheUnit) {
  WeightReader reader = [](int parameter, int64_t, int64_t, void*) {
    if (parameter == 3) throw Error("weights file is too short");
  };
  const auto plan = test::make_chain_plan({.ranks = 2});
  EXPECT_THAT(error_of([&] { Executor(std::vector{plan}, reader, chain_options()); }),
              AllOf(HasSubstr("weights file is too short"), HasSubstr("load[1] load_unit"), HasSubstr("unit block.1")));
}

TEST(Fault, DifferentPlansAreRefusedWithTheFirstDifference) {
  const ChainOptions o{.ranks = 3};
  const auto plan = test::make_chain_plan(o);
  auto run = [&](const Plan& other) {
    return error_of([&] { Executor({plan, plan, std::make_shared<Plan>(other)}, test::chain_weights(), chain_options()); });
  };
  EXPECT_EQ(run(*plan), "no error");
  Plan moved = *plan;
  moved.programs[1].steps[2].outputs[0].tensor -= 1;
  EXPECT_THAT(run(moved), AllOf(HasSubstr("ranks 0 and 2"), HasSubstr("micro_step step 2"), HasSubstr("block.0")));
  Plan longer = *plan;
  longer.programs[1].steps.pop_back();
  EXPECT_THAT(run(longer), AllOf(HasSubstr("micro_step step"), HasSubstr("absent")));
  Plan resized = *plan;
  resized.units[1].shard_elements += 64;
  EXPECT_THAT(run(resized), HasSubstr("unit 1: block.1"));
  Plan named = *plan;
  named.header.tool_version = "other";
  EXPECT_THAT(run(named), HasSubstr("digest"));
  EXPECT_THAT(error_of([&] { Executor({plan, plan}, test::chain_weights(), chain_options()); }), HasSubstr("2 plans for 3 ranks"));
}

TEST(Fault, AnOpWithoutKernelIsRefusedAtTheStart) {
  ExecutorOptions options = chain_options();
  options.backend = [](const Plan& plan, std::chrono::milliseconds deadline) {
    Backend backend = test::chain_backend(plan, deadline);
    backend.kernel_of = [](OpKind op) { return op == OpKind::record_loss ? nullptr : test::chain_kernel(op); };
    return backend;
  };
  EXPECT_THAT(error_of([&] { make({}, options); }), AllOf(HasSubstr("no kernel"), HasSubstr("record_loss"), HasSubstr("micro_step[")));
}

class NanData : public ChainData {
 public:
  using ChainData::ChainData;
  void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override {
    ChainData::read(index, first, count, order, to);
    if (first == 3) to.as<float>()[5] = std::numeric_limits<float>::infinity();
  }
};

TEST(Fault, ANonFiniteLossIsAnErrorAndUpdatesNothing) {
  const ChainOptions o{.ranks = 2};
  auto executor = make(o, chain_options());
  RunScalars scalars;
  scalars.step = 4;
  EXPECT_THAT(error_of([&] { executor->train_step(NanData(1000, o.width), 0, nullptr, scalars); }),
              AllOf(HasSubstr("not finite"), HasSubstr("step 4")));
  EXPECT_EQ(executor->weights(0).get(3), test::chain_weight(0, 3));
}

TEST(Fault, TheNanCheckNamesTheFirstOp) {
  const ChainOptions o{.ranks = 2};
  ExecutorOptions options = chain_options();
  options.check_nan = options.poison_padding = true;
  auto executor = make(o, options);
  RunScalars scalars;
  scalars.step = 4;
  EXPECT_EQ(error_of([&] { executor->train_step(ChainData(1000, o.width), 0, nullptr, scalars); }),
            "no error");  // NaN in the padding is not read
  EXPECT_THAT(error_of([&] { executor->train_step(NanData(1000, o.width), 0, nullptr, scalars); }),
              AllOf(HasSubstr("NaN or Inf in output 0 (x.1), element 5"), HasSubstr("rank 1, step 4, micro-batch 1"), HasSubstr("mul"),
                    HasSubstr("node node_")));
}

}  // namespace
}  // namespace zeroplan
