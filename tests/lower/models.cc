#include "tests/lower/models.h"

#include <fmt/format.h>

#include "graph/ops/verify_graph.h"
#include "passes/pass.h"
#include "passes/passes.h"

namespace zeroplan::test {
namespace {

void run(Graph& graph, const CompileOptions& options, std::initializer_list<bool (*)(Graph&, const CompileOptions&)> passes) {
  for (const auto pass : passes) {
    pass(graph, options);
    verify_graph(graph);
  }
}

}  // namespace

ValueId add_parameter(Graph& graph, const std::string& name, const Shape& shape, bool trainable) {
  Parameter parameter;
  parameter.name = name;
  parameter.shape = shape;
  parameter.trainable = trainable;
  parameter.source.initializer = name;
  parameter.source.bytes = elements(shape) * 4;
  graph.parameters.push_back(parameter);
  return graph.add_value(
      {.name = name, .shape = shape, .kind = ValueKind::parameter, .parameter = static_cast<int32_t>(graph.parameters.size()) - 1});
}

ValueId add_input(Graph& graph, const std::string& name, DType dtype, const Shape& shape) {
  const ValueId id = graph.add_value({.name = name, .dtype = dtype, .shape = shape, .kind = ValueKind::input});
  graph.inputs.push_back(id);
  return id;
}

void set_sum_loss(Graph& graph, ValueId y) {
  Builder build(graph);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < graph.values[y].shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  graph.loss.sum = build.add(OpKind::reduce_sum, {y}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{0}}}, "loss");
  graph.loss.description = "sum";
}

Graph chain(int64_t batch, const std::vector<int64_t>& dims, bool relu) {
  Graph graph;
  Builder build(graph);
  ValueId x = add_input(graph, "x", DType::f32, {batch, dims[0]});
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    const ValueId w = add_parameter(graph, fmt::format("w{}", i), {dims[i], dims[i + 1]});
    x = build.add(OpKind::matmul, {x, w}, {}, fmt::format("y{}", i));
    if (relu) x = build.add(OpKind::relu, {x});
  }
  set_sum_loss(graph, x);
  return graph;
}

Graph residual(int blocks, int64_t tokens, int64_t width, int64_t vocabulary) {
  Graph graph;
  Builder build(graph);
  const ValueId ids = add_input(graph, "ids", DType::i64, {tokens});
  const ValueId labels = add_input(graph, "labels", DType::i64, {tokens});
  const ValueId table = add_parameter(graph, "wte.weight", {vocabulary, width});
  ValueId x = build.add(OpKind::gather, {table, ids}, {{Attr::axis, int64_t{0}}}, "embedded");
  for (int i = 0; i < blocks; ++i) {
    const std::string block = fmt::format("h.{}.", i);
    const ValueId gamma = add_parameter(graph, block + "ln.weight", {width}), beta = add_parameter(graph, block + "ln.bias", {width});
    const ValueId w1 = add_parameter(graph, block + "fc.weight", {width, 4 * width}),
                  b1 = add_parameter(graph, block + "fc.bias", {4 * width});
    const ValueId w2 = add_parameter(graph, block + "proj.weight", {width, 4 * width});
    const ValueId n = build.add_multi(OpKind::layer_norm, {x, gamma, beta}, {{Attr::epsilon, 1e-5}})[0];
    ValueId h = build.add(OpKind::matmul, {n, w1});
    h = build.add(OpKind::relu, {build.add(OpKind::add, {h, b1})});
    x = build.add(OpKind::add, {x, build.add(OpKind::matmul, {h, build.transpose(w2, {1, 0})})}, {}, fmt::format("block{}", i));
  }
  const ValueId logits = build.add(OpKind::matmul, {x, build.transpose(table, {1, 0})}, {}, "logits");
  const std::vector<ValueId> loss =
      build.add_multi(OpKind::cross_entropy, {logits, labels}, {{Attr::ignore_index, int64_t{-100}}}, {"loss", "weight"});
  graph.loss = {loss[0], loss[1], "cross entropy"};
  return graph;
}

CompileOptions options_of(int ranks, int stage, int prefetch) {
  CompileOptions options;
  options.ranks = ranks;
  options.stage = stage;
  options.prefetch = prefetch;
  options.batch = options.micro_batches = ranks;
  return options;
}

void train_passes(Graph& graph, const CompileOptions& options) {
  if (options.eval) run(graph, options, {clone_eval});
  run(graph, options, {sync_batch_norm});
  run(graph, options, {precision, autodiff, canonicalize_views, cse, dce, fold_casts, mark_gradients, snapshot_source});
}

void zero_passes(Graph& graph, const CompileOptions& options) {
  run(graph, options, {partition_units, insert_all_gather, insert_free, insert_reduce_scatter, optimizer_update, prefetch_edges});
}

void lower_passes(Graph& graph, const CompileOptions& options) { run(graph, options, {schedule, materialize_views}); }

Plan compile_graph(Graph graph, const CompileOptions& options) {
  train_passes(graph, options);
  zero_passes(graph, options);
  lower_passes(graph, options);
  Plan plan = emit_plan(graph, options);
  plan.header.digest = plan_digest(plan);
  return plan;
}

int count_steps(const Plan& plan, Program program, StepKind kind) {
  const PlanProgram* found = find_program(plan, program);
  int count = 0;
  for (const Step& step : found->steps) count += step.kind == kind;
  return count;
}

int live_slots(const PlanProgram& program) {
  int live = 0, most = 0;
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::all_gather && program.program != Program::update) most = std::max(most, ++live);
    if (step.kind == StepKind::free) --live;
  }
  return most;
}

}  // namespace zeroplan::test
