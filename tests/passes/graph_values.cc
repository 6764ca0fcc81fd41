#include "graph_values.h"

#include <random>

#include "graph/ops/op_def.h"
#include "graph/ops/verify_graph.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

constexpr double kStep = 1e-5;

HostTensor random_tensor(const Value& value) {
  std::seed_seq seed(value.name.begin(), value.name.end());
  std::mt19937_64 engine(seed);
  HostTensor tensor(value.dtype, value.shape);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const uint64_t bits = engine();
    if (is_floating(value.dtype))
      tensor.set(i, static_cast<double>(bits >> 11) * 0x1p-52 - 1);
    else
      tensor.set_int(i, static_cast<int64_t>(bits % (value.dtype == DType::boolean ? 2 : 3)));
  }
  return tensor;
}

void add_result(std::map<std::string, HostTensor>& to, const std::string& name, ValueId id, const Graph& graph, const Contents& contents) {
  if (id == kNone) return;
  to[name] = graph.values[id].kind == ValueKind::constant ? graph.values[id].constant : contents.at(id);
}

}  // namespace

Contents random_contents(const Graph& graph) {
  Contents contents;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (value.kind == ValueKind::input || value.kind == ValueKind::parameter || value.kind == ValueKind::state)
      contents[id] = random_tensor(value);
  }
  return contents;
}

Contents evaluate(const Graph& graph, Program program, Contents contents) {
  Graph pure = graph;
  std::erase_if(pure.nodes, [](const Node& node) { return node.op == OpKind::record_loss || node.op == OpKind::record_output; });
  for (Node& node : pure.nodes)
    if (node.op == OpKind::all_reduce) node.op = OpKind::add, node.inputs.push_back(node.inputs[0]);
  pure.reindex();
  evaluate_program(pure, program, contents);
  return contents;
}

double loss_sum(const Graph& graph, const Contents& contents) { return contents.at(graph.loss.sum).get(0); }

std::map<std::string, HostTensor> results(const Graph& graph) {
  std::map<std::string, HostTensor> named;
  const Contents contents = evaluate(graph, Program::micro_step, random_contents(graph));
  for (const auto& [name, id] : graph.outputs) add_result(named, name, id, graph, contents);
  add_result(named, "loss sum", graph.loss.sum, graph, contents);
  add_result(named, "loss weight", graph.loss.weight, graph, contents);
  const Contents again = evaluate(graph, Program::eval_step, random_contents(graph));
  add_result(named, "eval loss sum", graph.eval_loss.sum, graph, again);
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::record_output) add_result(named, node.origin, node.inputs[0], graph, again);
  return named;
}

std::map<std::string, HostTensor> gradients(Graph graph) {
  CompileOptions options;
  options.micro_batches = 2;
  if (graph.gradients.empty()) autodiff(graph, options);
  verify_graph(graph);
  const Contents contents = evaluate(graph, Program::micro_step, random_contents(graph));
  std::map<std::string, HostTensor> named;
  for (const auto& [parameter, id] : graph.gradients) add_result(named, graph.parameters[parameter].name, id, graph, contents);
  return named;
}

std::map<std::string, HostTensor> numeric_gradients(const Graph& graph) {
  const Contents start = random_contents(graph);
  std::map<std::string, HostTensor> named;
  for (const auto& [id, tensor] : start) {
    const Value& value = graph.values[id];
    if (value.kind != ValueKind::parameter || !graph.parameters[value.parameter].trainable) continue;
    HostTensor gradient(DType::f64, value.shape);
    for (int64_t i = 0; i < tensor.count(); ++i) {
      double losses[2];
      for (int side = 0; side < 2; ++side) {
        Contents moved = start;
        moved[id].set(i, tensor.get(i) + (side == 0 ? kStep : -kStep));
        losses[side] = loss_sum(graph, evaluate(graph, Program::micro_step, std::move(moved)));
      }
      gradient.set(i, (losses[0] - losses[1]) / (2 * kStep));
    }
    named[graph.parameters[value.parameter].name] = gradient;
  }
  return named;
}

}  // namespace zeroplan
