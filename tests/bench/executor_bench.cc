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
  for (auto _ : state) executor.accumulate(data, 0, nullptr, {});
  size_t kernels = 0, collectives = 0;
  for (const Step& step : find_program(*plan, Program::micro_step)->steps) ++(step.kind == StepKind::kernel ? kernels : collectives);
  state.counters["kernel steps"] = static_cast<double>(kernels);
  state.counters["collectives and frees"] = static_cast<double>(collectives);
  state.counters["per step"] = benchmark::Counter(static_cast<double>(kernels + collectives) * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(issue)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace zeroplan
