#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "graph/ops/normalized_channels.h"
#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

// x [B, C, …] with the statistics of a round: its micro-batches, one on each rank.
class RoundStatistics {
 public:
  RoundStatistics(Builder& build, const Node& node, int64_t ranks) : build_(build) {
    const Shape shape = build.shape(node.inputs[0]);
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
      if (axis != 1) axes_.push_back(axis);
    count_ = static_cast<double>(elements(shape) / std::max<int64_t>(1, shape[1]) * ranks);
  }

  // Over all ranks, [C]. The all_reduce works in place, on bytes of its own.
  ValueId mean(ValueId x) {
    const DType dtype = build_.dtype(x);
    const ValueId sum = build_.add(OpKind::reduce_sum, {x}, {{Attr::axes, axes_}, {Attr::keepdims, int64_t{0}}});
    const ValueId own = dtype == DType::f64 ? build_.add(OpKind::copy, {sum}) : cast(sum, DType::f64);
    const ValueId all = build_.add(OpKind::all_reduce, {own});
    const ValueId mean = build_.add(OpKind::mul, {all, build_.scalar(1 / count_, DType::f64)});
    return dtype == DType::f64 ? mean : cast(mean, dtype);
  }

 private:
  ValueId cast(ValueId x, DType dtype) { return build_.add(OpKind::cast, {x}, {{Attr::dtype, dtype_value(dtype)}}); }

  Builder& build_;
  std::vector<int64_t> axes_;  // all but that of the channels
  double count_ = 1;
};

void normalize(GraphEdits& edits, NodeId id, const Node& node, int64_t ranks) {
  Builder build = edits.build_before(id);
  RoundStatistics round(build, node, ranks);
  const ValueId mean = round.mean(node.inputs[0]);
  const ValueId centred = build.add(OpKind::sub, {node.inputs[0], spread_channels(build, mean, build.shape(node.inputs[0]).size())});
  const ValueId variance = round.mean(build.add(OpKind::mul, {centred, centred}));
  const ValueId y = normalized_channels(build, node.inputs[0], {mean, variance, node.inputs[1], node.inputs[2]},
                                        node.attributes.get_double(Attr::epsilon));
  edits.place();
  const ValueId results[] = {y, mean, variance};
  for (size_t i = 0; i < node.outputs.size(); ++i) edits.forward(node.outputs[i], results[i]);
  edits.erase(id);
}

}  // namespace

bool sync_batch_norm(Graph& graph, const CompileOptions& options) {
  if (!options.sync_bn || options.ranks == 1) return false;
  if (options.micro_batches != options.ranks)
    throw Error(fmt::format("--sync-bn needs a micro-batch on each of the {}, but there are {}; use --micro-batches {}",
                            counted(options.ranks, "rank"), counted(options.micro_batches, "micro-batch"), options.ranks));
  GraphEdits edits(graph);
  const NodeId count = static_cast<NodeId>(graph.nodes.size());
  for (NodeId id = 0; id < count; ++id)
    if (graph.nodes[id].op == OpKind::batch_norm && graph.nodes[id].program == Program::micro_step)
      normalize(edits, id, Node(graph.nodes[id]), options.ranks);
  return edits.apply();
}

}  // namespace zeroplan
