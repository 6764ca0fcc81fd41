#include "tests/plan/plans.h"

#include <fmt/format.h>

#include "api/batching.h"
#include "api/zeroplan.h"

namespace zeroplan::test {

Plan residual_plan(int ranks, int stage, int prefetch, int rounds) {
  CompileOptions options = options_of(ranks, stage, prefetch);
  options.batch = options.micro_batches = ranks * rounds;
  options.eval = true;
  options.unit_patterns = {"h\\.(\\d+)\\."};
  Graph graph = residual(3, 6, 8, 20);
  graph.parameters[1].trainable = false;  // the first block's scale
  Plan plan = compile_graph(std::move(graph), options);
  plan.header.options = effective_options(options);
  set_digest(plan);
  return plan;
}

Plan chain_plan(int ranks, int stage, int prefetch, int rounds) {
  CompileOptions options = options_of(ranks, stage, prefetch);
  options.batch = options.micro_batches = ranks * rounds;
  options.optimizer = OptimizerKind::sgd;
  options.momentum = 0.9;
  options.unit_patterns = {"w(\\d+)"};
  return compile_graph(chain(4, {10, 30, 10, 30, 10}, true), options);
}

Plan model_plan(const std::string& name, int ranks, int stage, int prefetch) {
  CompileOptions options = options_of(ranks, stage, prefetch);
  options.batch = 2 * options.micro_batches;
  options.eval = true;
  return compile(fmt::format("{}/tests/models/{}/model.onnx", ZEROPLAN_SOURCE_DIR, name), options);
}

std::string violations(const Plan& plan) {
  std::string text;
  for (const Violation& v : verify_plan(plan).violations) text += fmt::format("[{}] {} {}: {}\n", v.rule, v.program, v.step, v.message);
  return text;
}

void set_digest(Plan& plan) { plan.header.digest = plan_digest(plan); }

}  // namespace zeroplan::test
