#include <algorithm>
#include <numeric>

#include "passes/edit/graph_edits.h"
#include "passes/edit/producers.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

using Permutation = std::vector<int64_t>;

bool is_identity(const Permutation& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

// transpose(transpose(x, first), second) == transpose(x, result).
Permutation compose(const Permutation& first, const Permutation& second) {
  Permutation result;
  for (int64_t axis : second) result.push_back(first[axis]);
  return result;
}

// For each axis of `coarse` the number of consecutive axes of `fine` that multiply to it; empty where fine does not refine coarse.
std::vector<size_t> refinement(const Shape& coarse, const Shape& fine) {
  std::vector<size_t> counts;
  size_t next = 0;
  for (size_t i = 0; i < coarse.size(); ++i) {
    if (coarse[i] == 0 || next == fine.size()) return {};
    size_t count = 1;
    int64_t product = fine[next++];
    while (product < coarse[i] && next < fine.size()) {
      product *= fine[next++];
      ++count;
    }
    if (product != coarse[i]) return {};
    // Leftover axes of size 1 belong to the last axis.
    while (i + 1 == coarse.size() && next < fine.size() && fine[next] == 1) {
      ++next;
      ++count;
    }
    counts.push_back(count);
  }
  return next == fine.size() ? counts : std::vector<size_t>{};
}

class ViewCanonicalizer {
 public:
  explicit ViewCanonicalizer(Graph& graph) : graph_(graph), edits_(graph) {}

  bool run() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      for (ValueId& input : graph_.nodes[id].inputs) input = resolve(input);
      switch (graph_.nodes[id].op) {
        case OpKind::reshape: reshape(id); break;
        case OpKind::transpose: transpose(id); break;
        case OpKind::slice: slice(id); break;
        case OpKind::broadcast: broadcast(id); break;
        default: break;
      }
    }
    return edits_.apply() || changed_;
  }

 private:
  Node& node(NodeId id) { return graph_.nodes[id]; }
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }

  ValueId resolve(ValueId id) {
    const auto found = forwarded_.find(id);
    if (found == forwarded_.end()) return id;
    changed_ = true;
    return found->second;
  }

  // A node that changes nothing: its readers read its operand.
  bool forward_if(bool nothing_changes, NodeId id) {
    if (!nothing_changes) return false;
    forwarded_[node(id).outputs[0]] = node(id).inputs[0];
    edits_.forward(node(id).outputs[0], node(id).inputs[0]);
    return true;
  }

  // Reads through `inner`, whose effect on values node `id` undoes or repeats.
  void bypass(NodeId id, const Node& inner) {
    node(id).inputs[0] = inner.inputs[0];
    changed_ = true;
  }

  void reshape(NodeId id) {
    if (const Node* inner = producer_of(graph_, node(id).inputs[0], OpKind::reshape)) bypass(id, *inner);
    if (forward_if(shape(node(id).inputs[0]) == shape(node(id).outputs[0]), id)) return;
    split_before_transpose(id);
  }

  // reshape(transpose(reshape(x))) where the outer reshape only splits axes: the split goes first, and meets the inner reshape.
  void split_before_transpose(NodeId id) {
    const Node* inner = producer_of(graph_, node(id).inputs[0], OpKind::transpose);
    const Node* first = inner ? producer_of(graph_, inner->inputs[0], OpKind::reshape) : nullptr;
    if (!first) return;
    const Shape& target = shape(node(id).outputs[0]);
    const std::vector<size_t> counts = refinement(shape(inner->outputs[0]), target);
    if (counts.empty()) return;
    const Permutation& outer = inner->attributes.get_ints(Attr::permutation);
    std::vector<int64_t> begin(counts.size(), 0);  // first axis of `target` of each axis of the transposed
    for (size_t i = 1; i < counts.size(); ++i) begin[i] = begin[i - 1] + static_cast<int64_t>(counts[i - 1]);
    Shape split;
    Permutation permutation(target.size());
    for (size_t axis = 0; axis < outer.size(); ++axis) {
      const size_t at = std::find(outer.begin(), outer.end(), static_cast<int64_t>(axis)) - outer.begin();
      for (size_t k = 0; k < counts[at]; ++k) {
        permutation[begin[at] + k] = static_cast<int64_t>(split.size());
        split.push_back(target[begin[at] + k]);
      }
    }
    const ValueId source = first->inputs[0];
    Builder build = edits_.build_before(id);
    const ValueId x = build.reshape(source, split);
    edits_.place();
    edits_.become(id, OpKind::transpose, {x}, {{Attr::permutation, permutation}});
    transpose(id);
  }

  void transpose(NodeId id) {
    Permutation permutation = node(id).attributes.get_ints(Attr::permutation);
    if (const Node* inner = producer_of(graph_, node(id).inputs[0], OpKind::transpose)) {
      permutation = compose(inner->attributes.get_ints(Attr::permutation), permutation);
      node(id).attributes.set(Attr::permutation, permutation);
      bypass(id, *inner);
    }
    forward_if(is_identity(permutation), id);
  }

  void slice(NodeId id) {
    if (const Node* inner = producer_of(graph_, node(id).inputs[0], OpKind::slice)) {
      std::vector<int64_t> starts = inner->attributes.get_ints(Attr::starts), steps = inner->attributes.get_ints(Attr::steps);
      const std::vector<int64_t> more = node(id).attributes.get_ints(Attr::starts), stride = node(id).attributes.get_ints(Attr::steps);
      for (size_t i = 0; i < starts.size(); ++i) {
        starts[i] += more[i] * steps[i];
        steps[i] *= stride[i];
      }
      node(id).attributes.set(Attr::starts, starts);
      node(id).attributes.set(Attr::steps, steps);
      bypass(id, *inner);
    }
    const std::vector<int64_t>& steps = node(id).attributes.get_ints(Attr::steps);
    const bool whole = shape(node(id).inputs[0]) == shape(node(id).outputs[0]) &&
                       std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
    forward_if(whole, id);
  }

  void broadcast(NodeId id) {
    if (const Node* inner = producer_of(graph_, node(id).inputs[0], OpKind::broadcast)) bypass(id, *inner);
    forward_if(shape(node(id).inputs[0]) == shape(node(id).outputs[0]), id);
  }

  Graph& graph_;
  GraphEdits edits_;
  std::map<ValueId, ValueId> forwarded_;
  bool changed_ = false;
};

}  // namespace

bool canonicalize_views(Graph& graph, const CompileOptions&) { return ViewCanonicalizer(graph).run(); }

}  // namespace zeroplan
