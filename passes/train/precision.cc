// Values of 16 bits (--precision bf16, fp16): parameters, and what is computed from them, but for what computed_in.h and the loss keep in
// float32. Backward and update follow, as autodiff runs later.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/views.h"
#include "passes/passes.h"
#include "passes/train/computed_in.h"
#include "passes/train/loss_nodes.h"

namespace zeroplan {
namespace {

// Does the type hold the numbers of the tensor, each up to a rounding of the largest?
bool holds(DType half, const HostTensor& tensor) {
  const HostTensor rounded = tensor.cast(half);
  double largest = 0, error = 0;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const double x = tensor.get(i);
    if (!std::isfinite(x)) continue;
    largest = std::max(largest, std::abs(x));
    error = std::max(error, std::abs(rounded.get(i) - x));
  }
  return error <= largest * (half == DType::f16 ? 0x1p-11 : 0x1p-8);
}

class Narrower {
 public:
  Narrower(Graph& graph, DType half) : graph_(graph), half_(half), of_loss_(loss_nodes(graph)) {}

  // Returns whether anything has another type now.
  bool run() {
    narrow_parameters();
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) rewrite(std::move(nodes[i]), of_loss_[i]);
    for (ValueId* id : {&graph_.loss.sum, &graph_.loss.weight})
      if (*id != kNone && graph_.values[*id].dtype == half_) *id = as(*id, DType::f32, Node{});
    sort_programs(graph_);
    return changed_;
  }

 private:
  bool is_single(ValueId id) const { return id != kNone && graph_.values[id].dtype == DType::f32; }

  void set(DType& dtype, DType to) {
    changed_ |= dtype != to;
    dtype = to;
  }

  // Running statistics are no values of the model, and a 16-bit master would lose the integers that a quantised weight is rounded to.
  void narrow_parameters() {
    for (Parameter& parameter : graph_.parameters)
      if (parameter.dtype == DType::f32 && !parameter.statistics && !parameter.source.quantization) set(parameter.dtype, half_);
    for (Value& value : graph_.values)
      if (value.kind == ValueKind::parameter) value.dtype = graph_.parameters[value.parameter].dtype;
  }

  // float32 that takes any type: constants, and what is made of them and of booleans without arithmetic.
  bool makes_free(const Node& node) const {
    if (node.op == OpKind::fill) return true;
    if (node.op == OpKind::cast) return graph_.values[node.inputs[0]].dtype == DType::boolean;
    return is_view(node) && is_free(node.inputs[0]);
  }
  bool is_free(ValueId id) const { return graph_.values[id].kind == ValueKind::constant || free_.count(id) > 0; }

  bool must_be_single(const Node& node) const {
    for (const ValueId input : node.inputs)
      if (is_single(input) && (!is_free(input) || !fits(input))) return true;
    return false;
  }

  bool fits(ValueId id) const {
    const Value& value = graph_.values[id];
    if (value.kind == ValueKind::constant) return holds(half_, value.constant);
    const Node& node = graph_.nodes[value.producer];
    if (node.op == OpKind::fill) return holds(half_, HostTensor::of<double>(DType::f32, {}, {node.attributes.get_double(Attr::value)}));
    return !is_view(node) || fits(node.inputs[0]);
  }

  DType compute_type(const Node& node, bool of_loss) const {
    const ComputedIn kind = computed_in(node.op);
    if (of_loss || kind == ComputedIn::single) return DType::f32;
    if (kind == ComputedIn::half) return half_;
    return must_be_single(node) ? DType::f32 : half_;
  }

  bool is_float(ValueId id) const { return id != kNone && (is_single(id) || graph_.values[id].dtype == half_); }

  void rewrite(Node node, bool of_loss) {
    const bool computes = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return is_float(id); });
    const bool free = makes_free(node);
    if (computes && !free) {
      const DType dtype = compute_type(node, of_loss);
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (is_float(node.inputs[i])) node.inputs[i] = operand(node, static_cast<int>(i), dtype);
      if (node.op == OpKind::cast && dtype_attribute(node.attributes) == DType::f32) node.attributes.set(Attr::dtype, dtype_value(dtype));
    }
    const std::vector<OutputType> types = infer_node(graph_, node);
    for (size_t i = 0; i < types.size(); ++i) set(graph_.values[node.outputs[i]].dtype, types[i].dtype);
    if (free) free_.insert(node.outputs.begin(), node.outputs.end());
    graph_.add_node(std::move(node));
  }

  // A mask is added to scores: what hides in float32 has to hide in 16 bits, and an infinity would be none of its numbers.
  ValueId operand(const Node& node, int i, DType dtype) {
    const ValueId id = node.inputs[i];
    const bool mask = node.op == OpKind::attention && i == 3 && is_single(id) && !(is_free(id) && fits(id));
    return as(mask ? clamped(id, node) : id, dtype, node);
  }

  ValueId clamped(ValueId id, const Node& reader) {
    const double lowest = half_ == DType::f16 ? -65504.0 : -0x1.fep127;
    Builder build = builder(reader);
    if (graph_.values[id].kind != ValueKind::constant) return build.add(OpKind::maximum, {id, build.scalar(lowest, DType::f32)});
    HostTensor tensor = graph_.values[id].constant;
    for (int64_t k = 0; k < tensor.count(); ++k)
      if (std::isfinite(tensor.get(k))) tensor.set(k, std::max(tensor.get(k), lowest));
    return build.constant(std::move(tensor), graph_.values[id].name);
  }

  Builder builder(const Node& reader) {
    Builder build(graph_);
    build.origin = reader.origin;
    build.program = reader.program;
    build.backward = reader.backward;
    return build;
  }

  // The value in this type: made once for each program that reads it.
  ValueId as(ValueId id, DType dtype, const Node& reader) {
    if (graph_.values[id].dtype == dtype) return id;
    changed_ = true;
    const std::tuple key(id, dtype, reader.program);
    if (const auto known = as_.find(key); known != as_.end()) return known->second;
    return as_[key] = is_free(id) ? remade(id, dtype, reader) : builder(reader).cast(id, dtype);
  }

  ValueId remade(ValueId id, DType dtype, const Node& reader) {
    Builder build = builder(reader);
    if (graph_.values[id].kind == ValueKind::constant)
      return build.constant(graph_.values[id].constant.cast(dtype), graph_.values[id].name);
    Node node = graph_.nodes[graph_.values[id].producer];
    if (is_view(node))
      node.inputs[0] = as(node.inputs[0], dtype, reader);
    else
      node.attributes.set(Attr::dtype, dtype_value(dtype));
    return build.add(node.op, node.inputs, node.attributes);
  }

  Graph& graph_;
  const DType half_;
  const std::vector<bool> of_loss_;
  bool changed_ = false;
  std::set<ValueId> free_;  // computed ones
  std::map<std::tuple<ValueId, DType, Program>, ValueId> as_;
};

}  // namespace

bool precision(Graph& graph, const CompileOptions& options) {
  return is_half(options.precision) && Narrower(graph, options.precision).run();
}

}  // namespace zeroplan
