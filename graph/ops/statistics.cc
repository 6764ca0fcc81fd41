// record_statistics: mean, variance, statistics → statistics'. fold_statistics: weights, statistics, report → weights', statistics' zeroed;
// starts: where the running mean and variance lie in the weights; momentum. Statistics: f64 [V, 2 C], a row per micro-batch.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

const Value& statistics_operand(const Graph& graph, const Node& node, int i) {
  const Value& value = operand(graph, node, i, "statistics");
  expect_dtype(value, DType::f64, "statistics");
  expect_rank(value, 2, 2, "statistics");
  return value;
}

std::vector<OutputType> infer_record_statistics(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  const Value &mean = wide_operand(graph, node, 0, "mean"), &variance = wide_operand(graph, node, 1, "variance");
  const Value& statistics = statistics_operand(graph, node, 2);
  expect_rank(mean, 1, 1, "mean");
  expect_dtype(variance, mean.dtype, "variance");
  expect_shape(variance, mean.shape, "variance");
  expect_shape(statistics, {statistics.shape[0], 2 * mean.shape[0]}, "statistics");
  return {{statistics.dtype, statistics.shape}};
}

std::vector<OutputType> infer_fold_statistics(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  const Value &weights = wide_operand(graph, node, 0, "weights"), &report = operand(graph, node, 2, "report");
  const Value& statistics = statistics_operand(graph, node, 1);
  expect_rank(weights, 1, 1, "weights");
  expect_dtype(report, DType::f64, "report");
  expect_rank(report, 1, 1, "report");
  const double momentum = node.attributes.get_double(Attr::momentum);
  if (!(momentum >= 0 && momentum <= 1)) throw Error(fmt::format("momentum {} is not from 0 to 1", momentum));
  const std::vector<int64_t>& starts = node.attributes.get_ints(Attr::starts);
  if (starts.size() != 2) throw Error("starts names two places in the weights");
  for (const int64_t start : starts)
    if (start < 0 || start > weights.shape[0] - statistics.shape[1] / 2) throw Error("running statistics outside of the weights");
  return {{weights.dtype, weights.shape}, {statistics.dtype, statistics.shape}};
}

}  // namespace

OpDef record_statistics_def() {
  OpDef def;
  def.infer = infer_record_statistics;
  def.in_place = {{0, 2}};
  return def;
}

OpDef fold_statistics_def() {
  OpDef def;
  def.infer = infer_fold_statistics;
  def.in_place = {{0, 0}, {1, 1}};
  return def;
}

}  // namespace zeroplan
