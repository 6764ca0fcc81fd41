// A plan that lacks one wait: the verifier refuses it, and where it is run all the same, delays of streams bring wrong bits to light.
#include <gtest/gtest.h>

#include <cuda_host/control.h>
#include <fmt/format.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

constexpr int kSeeds = 8;
constexpr unsigned kDelay = 400;  // microseconds before each operation of a stream, at most

Plan mlp_plan() {
  CompileOptions options = read_golden("mlp", "golden").compile;
  options.ranks = 2;
  options.micro_batches = 4;
  options.unit_bytes = 1;
  return compile(model_folder("mlp") + "/model.onnx", options);
}

// Losses and norms of two steps and the weights after them, or what the run failed with.
std::string outcome(const Plan& plan, bool cuda_graph, uint64_t seed) {
  cuda_host::settings().seed = seed;
  cuda_host::settings().max_delay_us = kDelay;
  ExecutorOptions options;
  options.backend = make_cuda_backend;
  options.cuda_graph = cuda_graph;
  std::string bytes;
  try {
    Executor executor(std::vector{std::make_shared<const Plan>(plan)}, open_weights(plan), options);
    const auto data = open_npy_folder(model_folder("mlp") + "/data", plan);
    for (int64_t step = 0; step < 2; ++step) {
      const StepReport report = executor.train_step(*data, step * plan.header.batch, nullptr, scalars_of_step(step, 0.1));
      bytes += fmt::format("{} {} ", report.loss, report.grad_norm);
    }
    for (size_t i = 0; i < plan.parameters.size(); ++i) {
      const HostTensor weights = executor.weights(static_cast<int>(i));
      bytes.append(reinterpret_cast<const char*>(weights.data()), static_cast<size_t>(weights.bytes()));
    }
  } catch (const std::exception& error) {
    bytes = error.what();
  }
  cuda_host::settings().max_delay_us = 0;
  return bytes;
}

class MissingWait : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Graphs, MissingWait, testing::Bool(), [](const auto& info) { return info.param ? "on" : "off"; });

// The first seed under which the plan does not give `right`; 0 without one.
int seed_of_fault(const Plan& plan, bool cuda_graph, const std::string& right) {
  for (int seed = 1; seed <= kSeeds; ++seed)
    if (outcome(plan, cuda_graph, seed) != right) return seed;
  return 0;
}

// Does the step wait for data? Else it waits until what it overwrites has been read, which delays rarely show.
bool reads_of(const Step& step, const Step& earlier) {
  for (const Operand& made : earlier.outputs)
    for (const Operand& read : step.inputs)
      if (made.tensor == read.tensor) return true;
  return false;
}

TEST_P(MissingWait, IsSeenUnderDelaysAndRefused) {
  const Plan whole = mlp_plan();
  const std::string right = outcome(whole, GetParam(), 1);
  EXPECT_EQ(seed_of_fault(whole, GetParam(), right), 0);
  int removed = 0, seen = 0;
  for (size_t p = 0; p < whole.programs.size(); ++p) {
    const PlanProgram& program = whole.programs[p];
    if (program.program != Program::micro_step && program.program != Program::update) continue;
    for (size_t s = 0; s < program.steps.size(); ++s)
      for (size_t w = 0; w < program.steps[s].waits.size(); ++w) {
        const int32_t lost = program.steps[s].waits[w];
        SCOPED_TRACE(fmt::format("{}[{}] without its wait for {}", program_name(program.program), s, lost));
        Plan broken = whole;
        auto& waits = broken.programs[p].steps[s].waits;
        waits.erase(waits.begin() + static_cast<int64_t>(w));
        EXPECT_FALSE(verify_plan(broken).ok());
        const int seed = seed_of_fault(broken, GetParam(), right);
        if (reads_of(program.steps[s], program.steps[lost])) EXPECT_GT(seed, 0);
        seen += seed > 0 ? 1 : 0;
        ++removed;
      }
  }
  RecordProperty("removed", removed);
  RecordProperty("seen", seen);
  EXPECT_GE(removed, 5);
  EXPECT_GE(2 * seen, removed);
}

}  // namespace
}  // namespace zeroplan
