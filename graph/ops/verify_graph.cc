#include "graph/ops/verify_graph.h"

#include <exception>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph) : graph_(graph), producer_(graph.values.size(), kNone) {}

  void run() {
    collect_producers();
    check_values();
    std::vector<bool> defined(graph_.values.size(), false);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      check_order(id, defined);
      check_types(id);
    }
    check_units();
    check_references();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw std::logic_error("graph: " + what); }

  [[noreturn]] void fail_node(NodeId id, const std::string& what) const {
    const Node& node = graph_.nodes[id];
    const bool named = !node.outputs.empty() && in_range(node.outputs[0]);
    fail(fmt::format("node {} {}{}{} in {}: {}", id, op_name(node.op), named ? " %" + graph_.values[node.outputs[0]].name : "",
                     node.origin.empty() ? "" : " of '" + node.origin + "'", program_name(node.program), what));
  }

  bool in_range(ValueId id) const { return id >= 0 && id < static_cast<ValueId>(graph_.values.size()); }

  void collect_producers() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      if (id > 0 && graph_.nodes[id].program < graph_.nodes[id - 1].program) fail_node(id, "stands after a node of a later program");
      for (ValueId output : graph_.nodes[id].outputs) {
        if (!in_range(output)) fail_node(id, fmt::format("output id {} is out of range", output));
        if (producer_[output] != kNone)
          fail_node(id, fmt::format("%{} is produced by node {} too", graph_.values[output].name, producer_[output]));
        producer_[output] = id;
      }
    }
  }

  void check_values() const {
    std::set<std::string_view> names;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const Value& value = graph_.values[id];
      if (!names.insert(value.name).second) fail(fmt::format("two values are called %{}", value.name));
      if (value.producer != producer_[id])
        fail(fmt::format("%{} has producer {}, reindex would give {}", value.name, value.producer, producer_[id]));
      const bool leaf = value.kind != ValueKind::computed && value.kind != ValueKind::state;
      if (leaf && producer_[id] != kNone) fail_node(producer_[id], fmt::format("output %{} is a leaf", value.name));
      check_index(value.parameter, graph_.parameters.size(), "parameter of %" + value.name);
      check_index(value.unit, graph_.units.size(), "unit of %" + value.name);
      check_copy(value);
      if (value.kind == ValueKind::constant) check_constant(value);
      if (value.kind == ValueKind::parameter) check_parameter(value);
    }
  }

  void check_copy(const Value& value) const {
    if (value.copy_of == kNone) return;
    check_reference(value.copy_of, "original of %" + value.name);
    const Value& original = graph_.values[value.copy_of];
    const bool master = value.dtype == wide_dtype(original.dtype);  // of a parameter in 16 bits
    if ((original.dtype != value.dtype && !master) || original.shape != value.shape)
      fail(fmt::format("%{} is {}{}, the value that it is a copy of {}{}", value.name, dtype_name(value.dtype), to_string(value.shape),
                       dtype_name(original.dtype), to_string(original.shape)));
  }

  void check_index(int32_t index, size_t size, const std::string& what) const {
    if (index < kNone || index >= static_cast<int64_t>(size)) fail(fmt::format("{}: index {} is out of range", what, index));
  }

  void check_constant(const Value& value) const {
    if (value.constant.dtype() != value.dtype || value.constant.shape() != value.shape || value.constant.count() != elements(value.shape))
      fail(fmt::format("constant %{} is {}{}, its tensor {}{}", value.name, dtype_name(value.dtype), to_string(value.shape),
                       dtype_name(value.constant.dtype()), to_string(value.constant.shape())));
  }

  void check_parameter(const Value& value) const {
    if (value.parameter == kNone) fail(fmt::format("%{} is a parameter, but does not say which", value.name));
    const Parameter& parameter = graph_.parameters[value.parameter];
    if (parameter.dtype != value.dtype || parameter.shape != value.shape)
      fail(fmt::format("%{} is {}{}, parameter '{}' {}{}", value.name, dtype_name(value.dtype), to_string(value.shape), parameter.name,
                       dtype_name(parameter.dtype), to_string(parameter.shape)));
  }

  // A computed operand must come from an earlier node of the same program; a leaf or state is there from the start.
  void check_order(NodeId id, std::vector<bool>& defined) const {
    const Node& node = graph_.nodes[id];
    for (ValueId input : node.inputs) {
      if (input == kNone) continue;
      if (!in_range(input)) fail_node(id, fmt::format("input id {} is out of range", input));
      const Value& value = graph_.values[input];
      const bool same_program = producer_[input] != kNone && graph_.nodes[producer_[input]].program == node.program;
      if (same_program ? !defined[input] : value.kind == ValueKind::computed)
        fail_node(id, fmt::format("reads %{} before it is defined in this program", value.name));
    }
    for (ValueId output : node.outputs) defined[output] = true;
    check_index(node.unit, graph_.units.size(), "unit of a node");
  }

  void check_types(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (!op_def(node.op).infer) return;
    std::vector<OutputType> types;
    try {
      types = infer_node(graph_, node);
    } catch (const std::exception& error) {
      fail_node(id, error.what());
    }
    if (types.size() != node.outputs.size())
      fail_node(id, fmt::format("has {} outputs, its op infers {}", node.outputs.size(), types.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      const Value& value = graph_.values[node.outputs[i]];
      if (value.dtype != types[i].dtype || value.shape != types[i].shape)
        fail_node(id, fmt::format("output {} is {}{}, its op infers {}{}", i, dtype_name(value.dtype), to_string(value.shape),
                                  dtype_name(types[i].dtype), to_string(types[i].shape)));
    }
  }

  void check_reference(ValueId id, const std::string& what, bool optional = false) const {
    if (!in_range(id) && !(optional && id == kNone)) fail(fmt::format("{}: value id {} is out of range", what, id));
  }

  void check_units() const {
    for (const Unit& unit : graph_.units) {
      const std::string what = "unit '" + unit.name + "'";
      for (const UnitParameter& member : unit.parameters)
        if (member.parameter < 0 || member.parameter >= static_cast<int64_t>(graph_.parameters.size()))
          fail(fmt::format("{}: parameter {} is out of range", what, member.parameter));
      for (ValueId id : {unit.weights_state, unit.gradient_shard, unit.gradient_full}) check_reference(id, what, true);
      for (ValueId id : unit.moments) check_reference(id, what);
    }
  }

  void check_statistics(const BatchStatistics& s) const {
    for (ValueId id : {s.mean, s.variance}) check_reference(id, "batch statistics");
    check_reference(s.recorded, "batch statistics", true);
    for (ValueId id : {s.running_mean, s.running_variance}) {
      check_reference(id, "running statistics");
      const Value& value = graph_.values[id];
      if (value.kind != ValueKind::parameter || !graph_.parameters[value.parameter].statistics ||
          value.shape != graph_.values[s.mean].shape)
        fail(fmt::format("%{} holds no running statistics of %{}", value.name, graph_.values[s.mean].name));
    }
  }

  void check_references() const {
    for (ValueId id : graph_.inputs) {
      check_reference(id, "inputs");
      if (graph_.values[id].kind != ValueKind::input) fail(fmt::format("inputs: %{} is not an input", graph_.values[id].name));
    }
    for (const auto& [name, id] : graph_.outputs) check_reference(id, "output '" + name + "'");
    for (const Loss* loss : {&graph_.loss, &graph_.eval_loss}) {
      check_reference(loss->sum, "loss", true);
      check_reference(loss->weight, "loss", true);
      check_reference(loss->scale, "loss", true);
    }
    for (const auto& [parameter, id] : graph_.gradients) {
      check_index(parameter, graph_.parameters.size(), "gradients");
      check_reference(id, "gradients");
    }
    for (const StateUpdate& update : graph_.state_updates) {
      check_reference(update.from, "state updates");
      check_reference(update.to, "state updates");
    }
    for (const BatchStatistics& s : graph_.statistics) check_statistics(s);
    for (const SourceNode& node : graph_.source) {
      for (ValueId id : node.inputs) check_reference(id, "source", true);
      for (ValueId id : node.outputs) check_reference(id, "source");
    }
  }

  const Graph& graph_;
  std::vector<NodeId> producer_;
};

}  // namespace

void verify_graph(const Graph& graph) { GraphVerifier(graph).run(); }

}  // namespace zeroplan
