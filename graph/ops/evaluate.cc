#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {

std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, std::span<const HostTensor> in) {
  const OpDef& def = op_def(node.op);
  if (!def.evaluate) throw Error(fmt::format("operator {} of node '{}' has no reference evaluator", op_name(node.op), node.origin));
  std::vector<HostTensor> out;
  for (OutputType& type : infer_node(graph, node)) out.emplace_back(type.dtype, std::move(type.shape));
  def.evaluate(node, in, out);
  return out;
}

void evaluate_program(const Graph& graph, Program program, std::map<ValueId, HostTensor>& values) {
  for (const Node& node : graph.nodes) {
    if (node.program != program) continue;
    std::vector<HostTensor> in(node.inputs.size());
    for (size_t i = 0; i < in.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNone) continue;
      if (graph.values[id].kind == ValueKind::constant) {
        in[i] = graph.values[id].constant;
        continue;
      }
      const auto found = values.find(id);
      if (found == values.end())
        throw Error(fmt::format("value '{}' has no contents to evaluate node '{}'", graph.values[id].name, node.origin));
      in[i] = found->second;
    }
    std::vector<HostTensor> out = evaluate_node(graph, node, in);
    for (size_t i = 0; i < out.size(); ++i) values[node.outputs[i]] = std::move(out[i]);
  }
}

}  // namespace zeroplan
