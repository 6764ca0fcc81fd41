#include "graph/onnx/sample_axes.h"

#include <algorithm>

#include "graph/onnx/same_samples.h"
#include "graph/ops/scalar_reference.h"

namespace zeroplan {
namespace {

using Kind = SampleAxis::Kind;

constexpr SampleAxis kFolded{Kind::folded, -1};

class Tracker {
 public:
  Tracker(const Graph& graph, const std::map<ValueId, int>& inputs)
      : graph_(graph), axes_(graph.values.size()), samples_(count_samples(graph, inputs)), same_(graph, samples_) {
    for (const auto& [input, axis] : inputs) axes_[input] = {Kind::axis, axis};
  }

  std::vector<SampleAxis> run() {
    for (const Node& node : graph_.nodes)
      for (size_t i = 0; i < node.outputs.size(); ++i)
        if (node.outputs[i] != kNone) axes_[node.outputs[i]] = of_output(node, static_cast<int>(i));
    return std::move(axes_);
  }

 private:
  static int64_t count_samples(const Graph& graph, const std::map<ValueId, int>& inputs) {
    return inputs.empty() ? 1 : std::max<int64_t>(1, graph.values[inputs.begin()->first].shape[inputs.begin()->second]);
  }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  int rank(ValueId id) const { return static_cast<int>(shape(id).size()); }
  bool is(ValueId id, Kind kind) const { return id != kNone && axes_[id].kind == kind; }

  bool is_read(ValueId id) const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [&](const Node& node) { return std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end(); });
  }

  SampleAxis meet(const Node& node) const {
    if (samples_ == 1) return {Kind::unknown};
    return {Kind::mixed, -1, 1, static_cast<NodeId>(&node - graph_.nodes.data())};
  }

  SampleAxis of_output(const Node& node, int output) {
    const std::vector<ValueId>& in = node.inputs;
    if (std::all_of(in.begin(), in.end(), [&](ValueId id) { return id == kNone || is(id, Kind::none); })) return {};
    for (const Kind kind : {Kind::mixed, Kind::unknown})
      for (const ValueId id : in)
        if (is(id, kind)) return axes_[id];
    if (elementwise_arity(node.op) > 0) return aligned(node, node.outputs[output]);
    const SampleAxis x = in[0] == kNone ? SampleAxis{} : axes_[in[0]];
    switch (node.op) {
      case OpKind::broadcast:
      case OpKind::dropout:
      case OpKind::copy: return aligned(node, node.outputs[output]);
      case OpKind::reshape: return reshaped(node, x);
      case OpKind::transpose: return transposed(x, node.attributes.get_ints(Attr::permutation));
      case OpKind::slice: return sliced(node, x);
      case OpKind::reduce_sum:
      case OpKind::reduce_mean:
      case OpKind::reduce_max: return reduced(node, x);
      case OpKind::reduce_prod: return reduced(node, x).kind == Kind::folded ? meet(node) : reduced(node, x);
      case OpKind::arg_max:
      case OpKind::cumsum:
      case OpKind::top_k: return along_axis(node, x);
      case OpKind::slice_grad: return placed(node, x);
      case OpKind::softmax:
      case OpKind::layer_norm:
      case OpKind::rms_norm: return x.kind == Kind::axis && x.axis + 1 == rank(in[0]) ? meet(node) : aligned(node, node.outputs[output]);
      case OpKind::matmul: return product(node);
      case OpKind::concat: return concatenated(node);
      case OpKind::gather: return gathered(node, x, axes_[in[1]]);
      case OpKind::gather_grad:
        return x.kind == Kind::axis && x.axis < node.attributes.get_int(Attr::axis) ? aligned_rows(node, x) : meet(node);
      case OpKind::scatter: return scattered(node);
      case OpKind::attention: return attended(node);
      case OpKind::batch_norm: return normalized(node, output);
      case OpKind::cross_entropy: return entropy(node, output);
      case OpKind::conv:
      case OpKind::conv_grad_input: return convolved(node, x);
      case OpKind::max_pool:
      case OpKind::average_pool:
        return x.kind == Kind::axis && (x.axis > 1 || (output > 0 && is_read(node.outputs[output]))) ? meet(node) : x;
      default: return meet(node);
    }
  }

  // The same place of the samples, or neither depends on them.
  SampleAxis joined(const Node& node, SampleAxis a, SampleAxis b) const {
    if (a.kind == Kind::none) return b;
    if (b.kind == Kind::none) return a;
    return a.kind == b.kind && a.axis == b.axis && a.stride == b.stride ? a : meet(node);
  }

  // NumPy broadcasting: axes are counted from the end.
  SampleAxis aligned(const Node& node, ValueId to) {
    SampleAxis result;
    for (const ValueId in : node.inputs) {
      if (in == kNone) continue;
      SampleAxis here = axes_[in];
      if (here.kind == Kind::axis) here.axis += rank(to) - rank(in);
      result = joined(node, result, here);
    }
    if (result.kind != Kind::axis || samples_ == 1) return result;
    for (const ValueId in : node.inputs)
      if (is(in, Kind::none) && !same_.holds(in, result.axis - rank(to) + rank(in), result.stride)) return meet(node);
    return result;
  }

  SampleAxis reshaped(const Node& node, SampleAxis x) const {
    const Shape &from = shape(node.inputs[0]), &to = shape(node.outputs[0]);
    if (x.kind != Kind::axis || from == to) return x;
    const AxisPart part = find_part(to, inner_elements(from, x.axis, x.stride), samples_);
    return part.axis < 0 ? meet(node) : SampleAxis{Kind::axis, part.axis, part.stride};
  }

  static SampleAxis transposed(SampleAxis x, const std::vector<int64_t>& permutation) {
    if (x.kind == Kind::axis) x.axis = static_cast<int>(std::find(permutation.begin(), permutation.end(), x.axis) - permutation.begin());
    return x;
  }

  SampleAxis sliced(const Node& node, SampleAxis x) const {
    if (x.kind != Kind::axis) return x;
    const int64_t round = samples_ * x.stride, start = node.attributes.get_ints(Attr::starts)[x.axis];
    const bool whole =
        node.attributes.get_ints(Attr::steps)[x.axis] == 1 && start % round == 0 && shape(node.outputs[0])[x.axis] % round == 0;
    return whole ? x : meet(node);
  }

  SampleAxis reduced(const Node& node, SampleAxis x) const {
    if (x.kind != Kind::axis) return x;
    const std::vector<int64_t>& axes = node.attributes.get_ints(Attr::axes);
    if (std::find(axes.begin(), axes.end(), x.axis) != axes.end()) return kFolded;
    if (rank(node.outputs[0]) != rank(node.inputs[0]))
      x.axis -= static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](int64_t a) { return a < x.axis; }));
    return x;
  }

  SampleAxis product(const Node& node) {
    const ValueId a = node.inputs[0], b = node.inputs[1];
    const int a_inner = rank(a) - 1, b_inner = std::max(0, rank(b) - 2);
    const bool a_sums = is(a, Kind::axis) && axes_[a].axis == a_inner, b_sums = is(b, Kind::axis) && axes_[b].axis == b_inner;
    if (a_sums && b_sums) return axes_[a].stride == axes_[b].stride ? kFolded : meet(node);
    if (a_sums) return is(b, Kind::none) && same_.holds(b, b_inner, axes_[a].stride) ? kFolded : meet(node);
    if (b_sums) return is(a, Kind::none) && same_.holds(a, a_inner, axes_[b].stride) ? kFolded : meet(node);
    const int to = rank(node.outputs[0]) - 1;
    SampleAxis rows = axes_[a], columns = axes_[b];
    if (rows.kind == Kind::axis) rows.axis += to - a_inner + (rank(b) == 1);
    if (columns.kind == Kind::axis) columns.axis += to - (rank(b) - 1) + (rank(a) == 1 && columns.axis < b_inner);
    const SampleAxis result = joined(node, rows, columns);
    if (result.kind != Kind::axis || to - result.axis < 2 || samples_ == 1) return result;
    for (const ValueId in : {a, b})  // an axis of the batch of products
      if (is(in, Kind::none) && !same_.holds(in, result.axis - to + rank(in) - 1, result.stride)) return meet(node);
    return result;
  }

  SampleAxis concatenated(const Node& node) {
    const SampleAxis result = aligned(node, node.outputs[0]);
    if (result.kind != Kind::axis || result.axis != node.attributes.get_int(Attr::axis)) return result;
    const bool whole = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      return is(in, Kind::axis) && shape(in)[result.axis] % (samples_ * result.stride) == 0;
    });
    return whole ? result : meet(node);
  }

  // Each line along the axis by itself.
  SampleAxis along_axis(const Node& node, SampleAxis x) const {
    const int axis = static_cast<int>(node.attributes.get_int(Attr::axis));
    if (x.kind != Kind::axis) return x;
    if (x.axis == axis) return meet(node);
    if (x.axis > axis) x.axis += rank(node.outputs[0]) - rank(node.inputs[0]);
    return x;
  }

  SampleAxis placed(const Node& node, SampleAxis x) const {
    if (x.kind != Kind::axis) return x;
    return shape(node.outputs[0])[x.axis] == shape(node.inputs[0])[x.axis] && node.attributes.get_ints(Attr::steps)[x.axis] == 1
               ? x
               : meet(node);
  }

  bool all_alike(const Node& node, SampleAxis where) {
    return samples_ == 1 || std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
             return !is(in, Kind::none) || where.axis >= rank(in) || same_.holds(in, where.axis, where.stride);
           });
  }

  // Samples in front of the rows that are picked, alike for indices of their own and for those that all share.
  SampleAxis aligned_rows(const Node& node, SampleAxis where) {
    const bool own = node.attributes.has(Attr::axes) && where.axis < static_cast<int>(node.attributes.get_ints(Attr::axes).size());
    return !own || all_alike(node, where) ? where : meet(node);
  }

  SampleAxis gathered(const Node& node, SampleAxis table, SampleAxis indices) {
    const int axis = static_cast<int>(node.attributes.get_int(Attr::axis));
    const int shared = node.attributes.has(Attr::axes) ? static_cast<int>(node.attributes.get_ints(Attr::axes).size()) : 0;
    const auto leads = [&](const SampleAxis& a) { return a.kind == Kind::axis && a.axis < shared; };
    if (leads(table) || leads(indices)) {
      const SampleAxis result = joined(node, table, indices);
      return result.kind == Kind::axis ? aligned_rows(node, result) : result;
    }
    if (table.kind == Kind::none) {
      if (indices.kind == Kind::axis) indices.axis += axis - shared;
      return indices;
    }
    if (indices.kind != Kind::none) return joined(node, table, indices).kind == Kind::folded ? kFolded : meet(node);
    if (table.kind != Kind::axis) return table;
    if (table.axis == axis) return gathered_from_own(node, table, axis, shared);
    if (table.axis > axis) table.axis += rank(node.inputs[1]) - shared - 1;
    return table;
  }

  // Constant indices along the samples themselves, each place of the batch taking the same of its own sample (x[arange(batch), …]).
  SampleAxis gathered_from_own(const Node& node, const SampleAxis& table, int axis, int shared) const {
    const Value& indices = graph_.values[node.inputs[1]];
    if (indices.kind != ValueKind::constant || samples_ == 1) return meet(node);
    for (int a = shared; a < static_cast<int>(indices.shape.size()); ++a) {
      const int64_t stride = indices.shape[a] / samples_;
      if (indices.shape[a] % samples_ == 0 && stride > 0 && takes_own(indices.constant, a, stride, table.stride))
        return {Kind::axis, axis + a - shared, stride};
    }
    return meet(node);
  }

  bool takes_own(const HostTensor& indices, int axis, int64_t stride, int64_t table_stride) const {
    const int64_t inner = inner_elements(indices.shape(), axis, stride);
    for (int64_t i = 0; i < indices.count(); ++i) {
      const int64_t sample = i / inner % samples_;
      if (indices.get_int(i) / table_stride != sample) return false;
      if (indices.get_int(i) != indices.get_int(i - sample * inner) + sample * table_stride) return false;
    }
    return true;
  }

  // In front of the rows that are written, or inside them.
  SampleAxis scattered(const Node& node) {
    const int rows = rank(node.inputs[1]) - 1;
    const SampleAxis indices = axes_[node.inputs[1]];
    SampleAxis result = joined(node, axes_[node.inputs[0]], axes_[node.inputs[2]]);
    if (result.kind != Kind::axis || result.axis <= rows) result = joined(node, result, indices);
    if (result.kind != Kind::axis) return result;
    const bool inside = result.axis > rows && indices.kind == Kind::none;
    return (result.axis < rows || inside) && all_alike(node, result) ? result : meet(node);
  }

  // Samples may lie on the batch, or on the heads where each has its own keys.
  SampleAxis attended(const Node& node) {
    const SampleAxis result = aligned(node, node.inputs[0]);
    if (result.kind != Kind::axis || result.axis == 0) return result;
    return result.axis == 1 && shape(node.inputs[0])[1] == shape(node.inputs[1])[1] ? result : meet(node);
  }

  // One weight for all samples of the batch.
  SampleAxis convolved(const Node& node, SampleAxis x) const {
    if (!is(node.inputs[1], Kind::none)) return meet(node);
    return x.kind == Kind::axis && x.axis > 0 ? meet(node) : x;
  }

  // Statistics of a batch bring its samples together, which a model in training mode means to do: each stays at its place.
  SampleAxis normalized(const Node& node, int output) const {
    const SampleAxis x = axes_[node.inputs[0]];
    const bool apart = x.kind == Kind::axis && x.axis != 1 && is(node.inputs[1], Kind::none) && is(node.inputs[2], Kind::none);
    return apart && output == 0 ? x : meet(node);
  }

  SampleAxis entropy(const Node& node, int output) {
    const SampleAxis scores = axes_[node.inputs[0]], labels = axes_[node.inputs[1]];
    const SampleAxis rows = joined(node, scores, labels);
    if (rows.kind != Kind::axis) return rows;
    if (rows.axis != 0) return meet(node);
    if (samples_ > 1)
      for (const ValueId in : node.inputs)
        if (is(in, Kind::none) && !same_.holds(in, 0, rows.stride)) return meet(node);
    return output < 2 ? kFolded : rows;
  }

  const Graph& graph_;
  std::vector<SampleAxis> axes_;
  const int64_t samples_;
  SameSamples same_;
};

}  // namespace

std::vector<SampleAxis> find_sample_axes(const Graph& graph, const std::map<ValueId, int>& inputs) { return Tracker(graph, inputs).run(); }

}  // namespace zeroplan
