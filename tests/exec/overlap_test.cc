// Gathers run while kernels run: what prefetch is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/exec/chain_plan.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;

// Six units, gather and forward of each take 20 ms. Milliseconds of one step of evaluation-like work on the trace's clock.
double traced_ms(int prefetch) {
  const test::ChainOptions o{.ranks = 2, .micro_batches = 2, .units = 6, .prefetch = prefetch};
  ExecutorOptions options;
  options.backend = test::chain_backend;
  options.trace = true;
  options.before_step = [](int, Program program, int, const Step& step) {
    if (program != Program::micro_step) return;
    if (step.kind == StepKind::all_gather || step.op == OpKind::mul || step.op == OpKind::silu_grad) std::this_thread::sleep_for(20ms);
  };
  Executor executor(std::vector{test::make_chain_plan(o)}, test::chain_weights(), options);
  RunScalars scalars;
  scalars.step = 1;
  return executor.train_step(test::ChainData(100, o.width), 0, nullptr, scalars).step_ms;
}

TEST(Overlap, PrefetchHidesGathers) {
  double without = traced_ms(0), with = traced_ms(1);
  for (int i = 0; i < 3; ++i) {  // other work on the machine only adds to a sleep
    without = std::min(without, traced_ms(0));
    with = std::min(with, traced_ms(1));
  }
  EXPECT_LT(with, 0.7 * without) << without << " ms without, " << with << " ms with prefetch";
}

}  // namespace
}  // namespace zeroplan
