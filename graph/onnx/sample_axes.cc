#include "graph/onnx/sample_axes.h"

#include <algorithm>

#include "graph/ops/scalar_reference.h"

namespace zeroplan {
namespace {

using Kind = SampleAxis::Kind;

constexpr SampleAxis kFolded{Kind::folded, -1}, kMixed{Kind::mixed, -1}, kUnknown{Kind::unknown, -1};

class Tracker {
 public:
  Tracker(const Graph& graph, const std::map<ValueId, int>& inputs) : graph_(graph), axes_(graph.values.size()) {
    for (const auto& [input, axis] : inputs) {
      axes_[input] = {Kind::axis, axis};
      samples_ = std::max<int64_t>(1, graph.values[input].shape[axis]);
    }
  }

  std::vector<SampleAxis> run() {
    for (const Node& node : graph_.nodes)
      for (size_t i = 0; i < node.outputs.size(); ++i)
        if (node.outputs[i] != kNone) axes_[node.outputs[i]] = of_output(node, static_cast<int>(i));
    return std::move(axes_);
  }

 private:
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  int rank(ValueId id) const { return static_cast<int>(shape(id).size()); }

  SampleAxis of_output(const Node& node, int output) const {
    const bool independent =
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in == kNone || axes_[in].kind == Kind::none; });
    if (independent) return {};
    for (const ValueId in : node.inputs)
      if (in != kNone && axes_[in].kind == Kind::mixed) return kMixed;
    if (elementwise_arity(node.op) > 0) return aligned(node, node.outputs[output]);
    const SampleAxis x = node.inputs[0] == kNone ? SampleAxis{} : axes_[node.inputs[0]];
    switch (node.op) {
      case OpKind::broadcast:
        return aligned(node, node.outputs[output]);
      case OpKind::copy:
        return x;
      case OpKind::reshape:
        return reshaped(x, shape(node.inputs[0]), shape(node.outputs[0]));
      case OpKind::transpose:
        return transposed(x, node.attributes.get_ints(Attr::permutation));
      case OpKind::slice:
        return x.kind == Kind::axis && shape(node.inputs[0])[x.axis] != shape(node.outputs[0])[x.axis] ? kUnknown : x;
      case OpKind::reduce_sum:
      case OpKind::reduce_mean:
      case OpKind::reduce_max:
        return reduced(node, x);
      case OpKind::softmax:
      case OpKind::layer_norm:
      case OpKind::rms_norm:
        return x.kind == Kind::axis && x.axis + 1 == rank(node.inputs[0]) ? kUnknown : aligned(node, node.outputs[output]);
      case OpKind::matmul:
        return product(node);
      case OpKind::concat:
        return x.kind == Kind::axis && x.axis == node.attributes.get_int(Attr::axis) ? kUnknown : aligned(node, node.outputs[output]);
      case OpKind::gather:
        return gathered(node, x, axes_[node.inputs[1]]);
      case OpKind::attention:
        return x.kind == Kind::axis && x.axis == 0 ? x : kUnknown;
      case OpKind::cross_entropy:
        return output < 2 ? kFolded : x;
      default:
        return kUnknown;
    }
  }

  // NumPy broadcasting: axes are counted from the end.
  SampleAxis aligned(const Node& node, ValueId to) const {
    SampleAxis result;
    for (const ValueId in : node.inputs) {
      if (in == kNone || axes_[in].kind == Kind::none) continue;
      SampleAxis here = axes_[in];
      if (here.kind == Kind::axis) here.axis += rank(to) - rank(in);
      if (result.kind == Kind::none)
        result = here;
      else if (result.kind != here.kind || result.axis != here.axis)
        return samples_ > 1 && result.kind != Kind::unknown && here.kind != Kind::unknown ? kMixed : kUnknown;
    }
    return result;
  }

  SampleAxis reshaped(SampleAxis x, const Shape& from, const Shape& to) const {
    if (x.kind != Kind::axis) return x;
    int64_t outer = 1, before = 1;
    for (int i = 0; i < x.axis; ++i) outer *= from[i];
    for (int i = 0; i < static_cast<int>(to.size()); before *= to[i++])
      if (before == outer && to[i] % samples_ == 0) return {Kind::axis, i};
    return kUnknown;
  }

  static SampleAxis transposed(SampleAxis x, const std::vector<int64_t>& permutation) {
    if (x.kind != Kind::axis) return x;
    return {Kind::axis, static_cast<int>(std::find(permutation.begin(), permutation.end(), x.axis) - permutation.begin())};
  }

  SampleAxis reduced(const Node& node, SampleAxis x) const {
    if (x.kind != Kind::axis) return x;
    const std::vector<int64_t>& axes = node.attributes.get_ints(Attr::axes);
    if (std::find(axes.begin(), axes.end(), x.axis) != axes.end()) return kFolded;
    const bool kept = rank(node.outputs[0]) == rank(node.inputs[0]);
    return {Kind::axis,
            kept ? x.axis : x.axis - static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](int64_t a) { return a < x.axis; }))};
  }

  SampleAxis product(const Node& node) const {
    const ValueId a = node.inputs[0], b = node.inputs[1];
    if (rank(a) < 2 || rank(b) < 2) return kUnknown;
    const bool a_sums = axes_[a].kind == Kind::axis && axes_[a].axis == rank(a) - 1,
               b_sums = axes_[b].kind == Kind::axis && axes_[b].axis == rank(b) - 2;
    const bool alone = axes_[a].kind == Kind::none || axes_[b].kind == Kind::none;
    if (a_sums || b_sums) return alone || (a_sums && b_sums) ? kFolded : kUnknown;
    return aligned(node, node.outputs[0]);
  }

  SampleAxis gathered(const Node& node, SampleAxis table, SampleAxis indices) const {
    const int axis = static_cast<int>(node.attributes.get_int(Attr::axis));
    if (table.kind == Kind::none) return indices.kind == Kind::axis ? SampleAxis{Kind::axis, axis + indices.axis} : indices;
    if (table.kind != Kind::axis || indices.kind != Kind::none || table.axis == axis) return kUnknown;
    return {Kind::axis, table.axis < axis ? table.axis : table.axis + rank(node.inputs[1]) - 1};
  }

  const Graph& graph_;
  std::vector<SampleAxis> axes_;
  int64_t samples_ = 1;
};

}  // namespace

std::vector<SampleAxis> find_sample_axes(const Graph& graph, const std::map<ValueId, int>& inputs) { return Tracker(graph, inputs).run(); }

}  // namespace zeroplan
