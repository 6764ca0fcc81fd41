#include "passes/edit/graph_edits.h"
#include "passes/edit/reads.h"
#include "passes/passes.h"
#include "passes/train/elementwise_chain.h"

namespace zeroplan {
namespace {

class ElementwiseFuser {
 public:
  explicit ElementwiseFuser(Graph& graph) : graph_(graph), users_(graph.users()), roots_(root_values(graph)), chains_(graph.nodes.size()) {}

  bool run() {
    std::vector<bool> absorbed(graph_.nodes.size(), false);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (may_stand(graph_.nodes[id])) grow(id, absorbed);
    GraphEdits edits(graph_);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      if (absorbed[id])
        edits.erase(id);
      else if (chains_[id].steps.size() > 1 && is_floating(graph_.values[graph_.nodes[id].outputs[0]].dtype))
        write(id);
    }
    return edits.apply();
  }

 private:
  // One result; every operand of one floating-point type or boolean. A comparison ends no chain: it only goes into its reader's.
  bool may_stand(const Node& node) const {
    if (!is_elementwise(node.op) || node.outputs.size() != 1) return false;
    const std::optional<DType> dtype = computed_in(node);
    const DType result = graph_.values[node.outputs[0]].dtype;
    return dtype && (result == *dtype || result == DType::boolean);
  }

  // The floating-point type of its operands that are not boolean; empty: none, or not one.
  std::optional<DType> computed_in(const Node& node) const {
    std::optional<DType> dtype;
    for (ValueId input : node.inputs) {
      if (input == kNone) return std::nullopt;
      const DType operand = graph_.values[input].dtype;
      if (operand == DType::boolean) continue;
      if (!is_floating(operand) || (dtype && *dtype != operand)) return std::nullopt;
      dtype = operand;
    }
    return dtype;
  }

  // Takes the chains of the node's operands into its own, as far as the limits allow.
  void grow(NodeId id, std::vector<bool>& absorbed) {
    const Node& node = graph_.nodes[id];
    std::map<ValueId, const ElementwiseChain*> joined;
    chains_[id] = *join_chains(node, {});
    if (graph_.values[node.outputs[0]].dtype == DType::boolean) return;
    for (ValueId input : node.inputs) {
      if (joined.count(input) || !may_join(input, id)) continue;
      joined[input] = &chains_[graph_.values[input].producer];
      if (std::optional<ElementwiseChain> chain = join_chains(node, joined))
        chains_[id] = std::move(*chain);
      else
        joined.erase(input);
    }
    for (const auto& [input, chain] : joined) absorbed[graph_.values[input].producer] = true;
  }

  // An operand that only this node reads, of the same shape, computed in the same direction. Across the border of forward and backward
  // a chain would keep its operands, and the units of its parameters, alive for longer.
  bool may_join(ValueId input, NodeId reader) const {
    const Value& value = graph_.values[input];
    if (value.producer == kNone || chains_[value.producer].steps.empty() || roots_.count(input)) return false;
    const Node &from = graph_.nodes[value.producer], &to = graph_.nodes[reader];
    const Value& result = graph_.values[to.outputs[0]];
    return users_[input].size() == 1 && from.program == to.program && from.backward == to.backward && value.shape == result.shape &&
           computed_in(from) == result.dtype;
  }

  void write(NodeId id) {
    Node& node = graph_.nodes[id];
    EncodedChain encoded = encode_chain(graph_, chains_[id], graph_.values[node.outputs[0]].shape);
    node.op = OpKind::elementwise;
    node.inputs = std::move(encoded.operands);
    node.attributes = std::move(encoded.attributes);
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::set<ValueId> roots_;
  std::vector<ElementwiseChain> chains_;  // by node; empty where it is no elementwise op
};

}  // namespace

bool fuse_elementwise(Graph& graph, const CompileOptions&) { return ElementwiseFuser(graph).run(); }

}  // namespace zeroplan
