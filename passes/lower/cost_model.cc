#include "passes/lower/cost_model.h"

#include <algorithm>

#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

constexpr double kFlopsPerUs = 50e3;           // 50 GFLOP/s
constexpr double kBytesPerUs = 10e3;           // 10 GB/s
constexpr double kCollectiveBytesPerUs = 5e3;  // 5 GB/s

double value_bytes(const Graph& graph, ValueId id) {
  return id == kNone ? 0 : static_cast<double>(elements(graph.values[id].shape) * dtype_bytes(graph.values[id].dtype));
}

double touched_bytes(const Graph& graph, const Node& node) {
  double bytes = 0;
  for (ValueId id : node.inputs) bytes += value_bytes(graph, id);
  for (ValueId id : node.outputs) bytes += value_bytes(graph, id);
  return bytes;
}

double flops_of(const Graph& graph, const Node& node) {
  const OpDef& def = op_def(node.op);
  if (def.flops) return def.flops(graph, node);
  return node.outputs.empty() ? 0 : static_cast<double>(elements(graph.values[node.outputs[0]].shape));
}

double collective_bytes(const Graph& graph, const Node& node, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (node.op == OpKind::all_reduce) return 2 * others * value_bytes(graph, node.inputs[0]);
  const Unit& unit = graph.units[node.unit];
  const DType dtype = node.op == OpKind::reduce_scatter ? unit.reduce_dtype : graph.values[node.inputs[0]].dtype;
  return others * static_cast<double>(unit.padded_elements * dtype_bytes(dtype));
}

}  // namespace

double predict_us(const Graph& graph, const Node& node, int ranks) {
  if (node.op == OpKind::free_unit || node.op == OpKind::fill_padding) return 0;
  if (op_class(node.op) == OpClass::comm) return collective_bytes(graph, node, ranks) / kCollectiveBytesPerUs;
  return std::max(flops_of(graph, node) / kFlopsPerUs, touched_bytes(graph, node) / kBytesPerUs);
}

double predict_program_us(const PlanProgram& program) {
  double stream_end[kStreams] = {};
  std::vector<double> end;
  for (const Step& step : program.steps) {
    double& stream = stream_end[static_cast<int>(step.stream)];
    for (int32_t wait : step.waits) stream = std::max(stream, end[wait]);
    stream += step.predicted_us;
    end.push_back(stream);
  }
  return *std::max_element(std::begin(stream_end), std::end(stream_end));
}

}  // namespace zeroplan
