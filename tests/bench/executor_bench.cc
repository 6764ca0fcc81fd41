// What the loop itself costs per step of a plan: a chain of units whose kernels do nothing. Argument: ranks.
#include <benchmark/benchmark.h>

#include "tests/exec/chain_plan.h"

namespace zeroplan {
namespace {

Backend idle_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  Backend backend = make_cpu_backend(plan, deadline);
  backend.kernel_of = [](OpKind) -> Kernel { return [](const KernelArgs&) {}; };
  return backend;
}

void issue(benchmark::State& state) {
  const test::ChainOptions chain{.ranks = static_cast<int>(state.range(0)), .micro_batches = state.range(0), .units = 200, .width = 1};
  const auto plan = test::make_chain_plan(chain);
  ExecutorOptions options;
  options.backend = idle_backend;
  Executor executor({plan}, test::chain_weights(), options);
  const test::ChainData data(1000, chain.width);
  double issuing_ms = 0, waiting_ms = 0;  // of the slowest rank's own thread
  for (auto _ : state) {
    const StepReport report = executor.accumulate(data, 0, nullptr, {});
    issuing_ms += report.step_ms - report.exposed_comm_ms - report.data_ms;
    waiting_ms += report.exposed_comm_ms;
  }
  const double steps =
      static_cast<double>(find_program(*plan, Program::micro_step)->steps.size()) * static_cast<double>(state.iterations());
  state.counters["issue us/step"] = issuing_ms * 1000 / steps;
  state.counters["wait us/step"] = waiting_ms * 1000 / steps;
}

BENCHMARK(issue)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace zeroplan
