#include <cmath>
#include <map>
#include <set>

#include "passes/edit/graph_edits.h"
#include "passes/edit/producers.h"
#include "passes/passes.h"
#include "passes/simplify/polynomial.h"

namespace zeroplan {
namespace {

constexpr int kSearchDepth = 8;

// gelu: Hendrycks and Gimpel 2016, exact and tanh forms; silu: x · sigmoid(x).
struct Form {
  OpKind inner;         // tanh, erf, sigmoid: t = inner(u)
  Polynomial argument;  // u in x
  Polynomial result;    // y in x and t
  OpKind op;
  int64_t approximate;
};

std::vector<Form> forms() {
  const double root = std::sqrt(2 / M_PI);
  const Polynomial half = {{{1, 0}, 0.5}, {{1, 1}, 0.5}};
  return {{OpKind::tanh, {{{1, 0}, root}, {{3, 0}, root * 0.044715}}, half, OpKind::gelu, 1},
          {OpKind::erf, {{{1, 0}, std::sqrt(0.5)}}, half, OpKind::gelu, 0},
          {OpKind::sigmoid, {{{1, 0}, 1.0}}, {{{1, 1}, 1.0}}, OpKind::silu, 0}};
}

class ActivationFuser {
 public:
  explicit ActivationFuser(Graph& graph) : graph_(graph), edits_(graph), users_(graph.users()) {}

  bool run() {
    const std::vector<Form> known = forms();
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      for (const Form& form : known)
        if (graph_.nodes[id].op == form.inner) fuse(id, form);
    return edits_.apply();
  }

 private:
  void fuse(NodeId id, const Form& form) {
    const ValueId u = graph_.nodes[id].inputs[0], t = graph_.nodes[id].outputs[0];
    std::set<ValueId> candidates;
    collect_operands(u, kSearchDepth, candidates);
    for (ValueId x : candidates) {
      const std::optional<Polynomial> argument = polynomial_of(graph_, u, x);
      if (!argument || !nearly_equal(*argument, form.argument)) continue;
      std::set<NodeId> results;
      std::map<ValueId, int> seen;
      collect_results(t, x, t, form, kSearchDepth, results, seen);
      for (NodeId result : results) edits_.become(result, form.op, {x}, attributes_of(form));
      return;
    }
  }

  static Attributes attributes_of(const Form& form) {
    if (form.op != OpKind::gelu) return {};
    return {{Attr::approximate, form.approximate}};
  }

  // Everything that u could be a polynomial of.
  void collect_operands(ValueId id, int depth, std::set<ValueId>& found) const {
    if (scalar_constant(graph_, id) || !found.insert(id).second || depth == 0) return;
    const Node* node = producer_of(graph_, id);
    if (!node) return;
    switch (node->op) {
      case OpKind::add:
      case OpKind::sub:
      case OpKind::mul:
      case OpKind::div:
      case OpKind::pow:
      case OpKind::neg:
        for (ValueId input : node->inputs) collect_operands(input, depth - 1, found);
        break;
      default: break;
    }
  }

  // Nodes behind `from` whose value, written in x and t, is the form's result. `seen`: with what depth a value was looked behind.
  void collect_results(ValueId from, ValueId x, ValueId t, const Form& form, int depth, std::set<NodeId>& found,
                       std::map<ValueId, int>& seen) const {
    int& deepest = seen[from];
    if (depth <= deepest) return;
    deepest = depth;
    for (NodeId user : users_[from]) {
      const ValueId y = graph_.nodes[user].outputs[0];
      const std::optional<Polynomial> value = polynomial_of(graph_, y, x, t);
      if (!value) continue;
      if (nearly_equal(*value, form.result))
        found.insert(user);
      else
        collect_results(y, x, t, form, depth - 1, found, seen);
    }
  }

  Graph& graph_;
  GraphEdits edits_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

bool fuse_gelu(Graph& graph, const CompileOptions&) { return ActivationFuser(graph).run(); }

}  // namespace zeroplan
