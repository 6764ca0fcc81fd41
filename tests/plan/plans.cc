#include "tests/plan/plans.h"
#include "tests/paths/paths.h"

#include <fmt/format.h>

#include "api/batching.h"
#include "api/zeroplan.h"

namespace zeroplan::test {

namespace {

Plan residual_plan(CompileOptions options, int rounds) {
  const int ranks = options.ranks;
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

}  // namespace

Plan residual_plan(int ranks, int stage, int prefetch, int rounds) { return residual_plan(options_of(ranks, stage, prefetch), rounds); }

Plan half_plan(int ranks, int stage, DType precision, int rounds) {
  CompileOptions options = options_of(ranks, stage);
  options.precision = precision;
  return residual_plan(std::move(options), rounds);
}

Plan chain_plan(int ranks, int stage, int prefetch, int rounds) {
  CompileOptions options = options_of(ranks, stage, prefetch);
  options.batch = options.micro_batches = ranks * rounds;
  options.optimizer = OptimizerKind::sgd;
  options.momentum = 0.9;
  options.unit_patterns = {"w(\\d+)"};
  return compile_graph(chain(4, {10, 30, 10, 30, 10}, true), options);
}

namespace {

Graph normalized() {
  Graph graph;
  Builder build(graph);
  ValueId x = add_input(graph, "x", DType::f32, {4, 6});
  for (int i = 0; i < 2; ++i) {
    const std::string block = fmt::format("h.{}.", i);
    const ValueId w = add_parameter(graph, block + "weight", {6, 6});
    const ValueId gamma = add_parameter(graph, block + "bn.weight", {6}), beta = add_parameter(graph, block + "bn.bias", {6});
    const ValueId mean = add_parameter(graph, block + "bn.running_mean", {6}, false);
    const ValueId variance = add_parameter(graph, block + "bn.running_var", {6}, false);
    for (const ValueId leaf : {mean, variance}) graph.parameters[graph.values[leaf].parameter].statistics = true;
    const std::vector<ValueId> y =
        build.add_multi(OpKind::batch_norm, {build.add(OpKind::matmul, {x, w}), gamma, beta}, {{Attr::epsilon, 1e-5}});
    graph.statistics.push_back({y[1], y[2], mean, variance, 0.9});
    x = build.add(OpKind::relu, {y[0]});
  }
  set_sum_loss(graph, x);
  return graph;
}

}  // namespace

Plan normalized_plan(int ranks, int stage, int rounds, bool sync) {
  CompileOptions options = options_of(ranks, stage, 1);
  options.batch = options.micro_batches = ranks * rounds;
  options.eval = true;
  options.sync_bn = sync;
  options.unit_patterns = {"h\\.(\\d+)\\."};
  return compile_graph(normalized(), options);
}

Plan unrecorded_plan(int ranks, bool sync, int64_t micro_batches, bool eval) {
  CompileOptions options = options_of(ranks, 3, 1);
  options.batch = options.micro_batches = micro_batches;
  options.sync_bn = sync;
  options.eval = eval;
  Graph graph = normalized();
  graph.statistics.clear();
  for (Parameter& p : graph.parameters) p.statistics = false;
  return compile_graph(std::move(graph), options);
}

Plan model_plan(const std::string& name, int ranks, int stage, int prefetch) {
  CompileOptions options = options_of(ranks, stage, prefetch);
  options.batch = 2 * options.micro_batches;
  options.eval = true;
  return compile(fmt::format("{}/tests/models/{}/model.onnx", kSourceFolder, name), options);
}

std::string violations(const Plan& plan) {
  std::string text;
  for (const Violation& v : verify_plan(plan).violations) text += fmt::format("[{}] {} {}: {}\n", v.rule, v.program, v.step, v.message);
  return text;
}

void set_digest(Plan& plan) { plan.header.digest = plan_digest(plan); }

}  // namespace zeroplan::test
