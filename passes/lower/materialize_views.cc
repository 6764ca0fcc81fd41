#include <map>
#include <tuple>

#include "graph/ops/op_def.h"
#include "passes/edit/graph_edits.h"
#include "passes/edit/views.h"
#include "passes/lower/layouts.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

class Materializer {
 public:
  explicit Materializer(Graph& graph) : graph_(graph), edits_(graph), layouts_(root_layouts(graph)) {}

  bool run() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      if (is_view(graph_.nodes[id]))
        lay_out_view(id);
      else
        check_operands(id);
    }
    return edits_.apply();
  }

 private:
  // A view of a view that no strides describe (a reshape of a transpose) becomes a view of a copy.
  void lay_out_view(NodeId id) {
    const ValueId input = graph_.nodes[id].inputs[0];
    if (!view_layout(graph_, graph_.nodes[id], 0, layouts_[input]).possible) {
      const ValueId copied = copy(input, id);
      graph_.nodes[id].inputs[0] = copied;
    }
    const Node& node = graph_.nodes[id];
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      layouts_[node.outputs[i]] = view_layout(graph_, node, i, layouts_[node.inputs[0]]);
  }

  bool takes(const Node& node, int input) const {
    const ValueId value = node.inputs[input];
    const Shape& shape = graph_.values[value].shape;
    if (is_contiguous(shape, layouts_[value].strides)) return true;
    const OpDef& def = op_def(node.op);
    return def.accepts && def.accepts(graph_, node, input, shape, layouts_[value].strides);
  }

  void check_operands(NodeId id) {
    if (op_class(graph_.nodes[id].op) != OpClass::kernel) return;
    for (int i = 0; i < static_cast<int>(graph_.nodes[id].inputs.size()); ++i) {
      const ValueId input = graph_.nodes[id].inputs[i];
      if (input == kNone || takes(graph_.nodes[id], i)) continue;
      const ValueId copied = copy(input, id);
      graph_.nodes[id].inputs[i] = copied;
    }
  }

  // One copy per view, program and direction: forward and backward do not share, so that it need not live in between.
  ValueId copy(ValueId value, NodeId reader) {
    const Node& node = graph_.nodes[reader];
    const auto key = std::make_tuple(value, node.program, node.backward);
    if (const auto known = copies_.find(key); known != copies_.end()) return known->second;
    Node copy = make_node(OpKind::copy, node.program, {value});
    copy.backward = node.backward;
    copy.origin = node.origin;
    copy.reason = "the reader takes no view";
    Value result;
    result.name = graph_.values[value].name + ".contiguous";
    result.dtype = graph_.values[value].dtype;
    result.shape = graph_.values[value].shape;
    const ValueId id = graph_.add_value(std::move(result));
    copy.outputs = {id};
    layouts_.push_back({id, contiguous_strides(graph_.values[id].shape)});
    copies_[key] = id;
    edits_.before(reader, std::move(copy));
    return id;
  }

  Graph& graph_;
  GraphEdits edits_;
  std::vector<Layout> layouts_;
  std::map<std::tuple<ValueId, Program, bool>, ValueId> copies_;
};

}  // namespace

bool materialize_views(Graph& graph, const CompileOptions&) { return Materializer(graph).run(); }

}  // namespace zeroplan
