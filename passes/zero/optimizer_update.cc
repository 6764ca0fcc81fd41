#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "passes/edit/graph_edits.h"
#include "passes/passes.h"
#include "passes/zero/program_builder.h"
#include "passes/zero/unit_state.h"
#include "runtime/plan/report.h"

namespace zeroplan {
namespace {

std::vector<std::string> moment_names(const CompileOptions& options) {
  if (options.optimizer != OptimizerKind::sgd) return {"m", "v"};
  if (options.momentum != 0) return {"momentum"};
  return {};
}

void add_moments(Graph& graph, const CompileOptions& options) {
  for (int32_t id = 0; id < static_cast<int32_t>(graph.units.size()); ++id) {
    if (!graph.units[id].trainable) continue;
    const Unit& unit = graph.units[id];
    const Shape shape = {unit.optimizer == Placement::sharded ? unit.shard_elements : unit.padded_elements};
    std::vector<ValueId> moments;
    for (const std::string& name : moment_names(options))
      moments.push_back(add_state(graph, graph.units[id].name + "." + name, graph.units[id].dtype, shape, id));
    graph.units[id].moments = std::move(moments);
  }
}

// Program-wide state of training or evaluation: per-micro-batch losses, and what they fold into.
struct Metrics {
  ValueId metrics = kNone, report = kNone;
};

// The metrics state that record_loss of the program writes.
ValueId recorded_metrics(const Graph& graph, Program program) {
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::record_loss && node.program == program) return node.inputs[2];
  throw std::logic_error(fmt::format("program {} records no loss", program_name(program)));
}

Metrics add_metrics(Graph& graph, Program program, const std::string& report) {
  return {recorded_metrics(graph, program), add_state(graph, report, DType::f64, {kReportFields})};
}

// all_reduce(metrics) and fold_metrics: the start of `update`, and all of `eval_end`.
void fold_losses(ProgramBuilder& build, const Metrics& state, const Loss& loss) {
  build.change(build.node(OpKind::all_reduce, {state.metrics}), {state.metrics});
  Node fold = build.node(OpKind::fold_metrics, {build.now(state.metrics), state.report});
  fold.attributes = {{Attr::value, int64_t{loss.weight != kNone}}};
  build.change(std::move(fold), {state.report, state.metrics});
}

// The unit's own steps of `update`: optimizer, and gathers where gradients or weights are replicated.
void update_unit(const Graph& graph, ProgramBuilder& build, int32_t id, const CompileOptions& options, ValueId report) {
  const Unit& unit = graph.units[id];
  const bool whole = unit.optimizer == Placement::replicated;
  if (whole) build.change(build.node(OpKind::gather_gradient, {unit.gradient_shard}, id), {unit.gradient_full});
  const ValueId gradient = whole ? unit.gradient_full : unit.gradient_shard;
  Node update = build.node(OpKind::optimizer_update, {unit.weights_state, build.now(gradient), build.now(report)}, id);
  update.inputs.insert(update.inputs.end(), unit.moments.begin(), unit.moments.end());
  update.attributes = {{Attr::optimizer, std::string(optimizer_name(options.optimizer))}};
  std::vector<ValueId> changed = {unit.weights_state};
  changed.insert(changed.end(), unit.moments.begin(), unit.moments.end());
  changed.push_back(gradient);
  build.change(std::move(update), changed);
  if (whole && !unit.carried) build.zero(unit.gradient_shard);
  const bool gather_weights = unit.weights == Placement::replicated && !whole;
  if (gather_weights) build.change(build.node(OpKind::gather_weights, {build.now(unit.weights_state)}, id), {unit.weights_state});
}

// The batch's statistics into the running ones, whole on every rank.
void fold_statistics(const Graph& graph, ProgramBuilder& build, ValueId report) {
  for (const BatchStatistics& s : graph.statistics) {
    const int32_t id = graph.values[s.running_mean].unit;
    const auto place_of = [&](ValueId leaf) {
      const auto& members = graph.units[id].parameters;
      return std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.parameter == graph.values[leaf].parameter; })
          ->offset;
    };
    const ValueId weights = graph.units[id].weights_state;
    Node fold = build.node(OpKind::fold_statistics, {build.now(weights), build.now(s.recorded), build.now(report)}, id);
    fold.attributes = {{Attr::starts, std::vector<int64_t>{place_of(s.running_mean), place_of(s.running_variance)}},
                       {Attr::momentum, s.momentum}};
    build.change(std::move(fold), {weights, s.recorded});
  }
}

void build_update(Graph& graph, GraphEdits& edits, const CompileOptions& options, const Metrics& state, ValueId limbs) {
  ProgramBuilder build(graph, edits, Program::update);
  fold_losses(build, state, graph.loss);
  for (const BatchStatistics& s : graph.statistics) build.change(build.node(OpKind::all_reduce, {s.recorded}), {s.recorded});
  const int32_t units = static_cast<int32_t>(graph.units.size());
  for (int32_t id = 0; id < units; ++id) {
    if (!graph.units[id].trainable) continue;
    build.change(build.node(OpKind::grad_norm, {graph.units[id].gradient_shard, build.now(state.report), build.now(limbs)}, id), {limbs});
  }
  build.change(build.node(OpKind::all_reduce, {build.now(limbs)}), {limbs});
  build.change(build.node(OpKind::clip_factor, {build.now(limbs), build.now(state.report)}), {state.report, limbs});
  for (int32_t id = 0; id < units; ++id)
    if (graph.units[id].trainable) update_unit(graph, build, id, options, state.report);
  fold_statistics(graph, build, state.report);
  build.finish();
}

bool has_program(const Graph& graph, Program program) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.program == program; });
}

// A forward plan: nothing but load and save.
bool load_and_save(Graph& graph) {
  std::vector<ValueId> outputs;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::record_output) outputs.push_back(node.inputs[1]);
  GraphEdits edits(graph);
  build_load(graph, edits, outputs);
  build_save(graph, edits);
  return edits.apply();
}

}  // namespace

bool optimizer_update(Graph& graph, const CompileOptions& options) {
  if (options.forward_only()) return load_and_save(graph);
  if (graph.units.empty()) return false;
  add_moments(graph, options);
  GraphEdits edits(graph);
  const Metrics train = add_metrics(graph, Program::micro_step, "report");
  const ValueId limbs = add_state(graph, "norm_limbs", DType::i64, {kNormLimbs});
  std::vector<ValueId> zeroed = {train.metrics, train.report, limbs};
  build_update(graph, edits, options, train, limbs);
  for (const BatchStatistics& s : graph.statistics) zeroed.push_back(s.recorded);
  if (has_program(graph, Program::eval_step)) {
    const Metrics eval = add_metrics(graph, Program::eval_step, "eval_report");
    zeroed.insert(zeroed.end(), {eval.metrics, eval.report});
    ProgramBuilder end(graph, edits, Program::eval_end);
    fold_losses(end, eval, graph.eval_loss);
    end.finish();
  }
  build_load(graph, edits, zeroed);
  build_save(graph, edits);
  edits.apply();
  return true;
}

}  // namespace zeroplan
