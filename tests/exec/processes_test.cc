// Ranks spread over several executors, as over processes: only the communicators join them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "tests/exec/chain_plan.h"

namespace zeroplan {
namespace {

using test::ChainData;
using test::ChainOptions;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kDeadline(20000);

// Communicators of all ranks; each process takes its own.
struct Wires {
  explicit Wires(int ranks) : gather(make_local_communicators(ranks, kDeadline)), reduce(make_local_communicators(ranks, kDeadline)) {}
  std::vector<std::unique_ptr<Communicator>> gather, reduce;

  ExecutorOptions options(int first, int count) {
    ExecutorOptions options;
    options.backend = [this, first, count](const Plan&, std::chrono::milliseconds) {
      Backend backend;
      const std::shared_ptr<Device> device = make_cpu_device(1);
      for (int r = first; r < first + count; ++r) backend.ranks.push_back({r, device, std::move(gather[r]), std::move(reduce[r])});
      backend.kernel_of = test::chain_kernel;
      return backend;
    };
    return options;
  }
};

struct Process {
  double loss = 0, eval_loss = 0;
  std::vector<int> exported;
  std::vector<float> last;  // of the last parameter, where it is exported
  std::string error;
};

Process work(const std::shared_ptr<const Plan>& plan, const ChainOptions& o, const ExecutorOptions& options) {
  Process result;
  try {
    Executor executor({plan}, test::chain_weights(), options);
    ChainData data(1000, o.width);
    for (int s = 0; s < 3; ++s) {
      RunScalars scalars;
      scalars.step = s + 1;
      scalars.lr = 0.05;
      result.loss = executor.train_step(data, s * o.micro_batches * o.samples, nullptr, scalars).loss;
    }
    result.eval_loss = executor.evaluate(ChainData(40, o.width)).loss;
    executor.export_parameters([&](int p, const void* values) {
      result.exported.push_back(p);
      const auto* floats = static_cast<const float*>(values);
      result.last.assign(floats, floats + o.width);
    });
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

TEST(Processes, TwoOfTwoRanksGiveTheBitsOfOneOfFour) {
  const ChainOptions o{.ranks = 4, .micro_batches = 5};
  const auto plan = test::make_chain_plan(o);
  Wires wires(4), alone(4);
  Process first, second;
  std::thread other([&] { second = work(plan, o, wires.options(2, 2)); });
  first = work(plan, o, wires.options(0, 2));
  other.join();
  const Process whole = work(plan, o, alone.options(0, 4));
  EXPECT_EQ(first.error + second.error + whole.error, "");
  EXPECT_EQ(first.loss, whole.loss);
  EXPECT_EQ(second.loss, whole.loss);
  EXPECT_EQ(second.eval_loss, whole.eval_loss);
  EXPECT_EQ(first.exported, whole.exported);
  EXPECT_EQ(first.last, whole.last);
  EXPECT_TRUE(second.exported.empty()) << "only the process of rank 0 writes";
  EXPECT_EQ(whole.last, test::run_dense(o, 3, 0.05).weights.back());
}

TEST(Processes, AllReportTheTimesOfTheSlowestRank) {
  const ChainOptions o{.ranks = 3, .micro_batches = 3};
  const auto plan = test::make_chain_plan(o);
  Wires wires(3);
  std::vector<StepReport> reports(3);
  std::vector<std::thread> processes;
  for (int r = 0; r < 3; ++r)
    processes.emplace_back([&, r] {
      ExecutorOptions options = wires.options(r, 1);
      options.before_step = [](int rank, Program program, int, const Step& step) {
        if (rank == 2 && program == Program::micro_step && step.kind == StepKind::kernel)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      };
      Executor executor({plan}, test::chain_weights(), options);
      RunScalars scalars;
      scalars.step = 1;
      reports[r] = executor.train_step(ChainData(1000, o.width), 0, nullptr, scalars);
    });
  for (std::thread& process : processes) process.join();
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.slowest_rank, 2);
    EXPECT_EQ(report.compute_ms, reports[0].compute_ms);
    EXPECT_EQ(report.step_ms, reports[0].step_ms);
    EXPECT_GT(report.compute_ms, 5);
  }
}

TEST(Processes, DifferentPlansAreFoundThroughTheCommunicator) {
  const ChainOptions o{.ranks = 2};
  auto changed = std::make_shared<Plan>(*test::make_chain_plan(o));
  changed->header.prefetch = 7;
  Wires wires(2);
  Process first, second;
  std::thread other([&] { second = work(changed, o, wires.options(1, 1)); });
  first = work(test::make_chain_plan(o), o, wires.options(0, 1));
  other.join();
  EXPECT_THAT(second.error, HasSubstr("ranks 0 and 1 have different plans; the first entry that differs is header"));
  EXPECT_THAT(second.error, HasSubstr("prefetch 7"));
  EXPECT_THAT(second.error, HasSubstr("rank 1"));
  EXPECT_NE(first.error, "");
}

}  // namespace
}  // namespace zeroplan
