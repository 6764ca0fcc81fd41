// Gradient of ai.onnx.preview.training: the backward of the graph between named values, built from the operators' vjps. Inputs are values
// for xs, then zs; where they are others than the named ones, the nodes between are decoded once more on them.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/graph_decoder.h"
#include "graph/onnx/limits.h"
#include "graph/ops/backward.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

std::vector<std::string> strings(const OnnxNode& node, const char* attribute) {
  const OnnxAttribute* a = node.find(attribute);
  return a ? a->strings : std::vector<std::string>{};
}

std::string target_name(const OnnxNode& node) {
  const OnnxAttribute* y = node.find("y");
  if (!y || y->s.empty()) throw Error("its attribute y names no value");
  return y->s;
}

bool depends(const OnnxNode& node, const std::set<std::string>& names) {
  std::set<std::string> reads;
  add_reads(node, reads);
  return std::any_of(reads.begin(), reads.end(), [&](const std::string& name) { return names.count(name) > 0; });
}

bool makes_any(const OnnxNode& node, const std::vector<std::string>& names) {
  return std::find_first_of(node.outputs.begin(), node.outputs.end(), names.begin(), names.end()) != node.outputs.end();
}

ValueId filled_like(Builder& build, ValueId x, double value) { return build.filled(value, build.shape(x), build.dtype(x)); }

// Gradients of `y` for each of `leaves`.
std::vector<ValueId> gradients(Graph& graph, const std::string& origin, ValueId y, const std::vector<ValueId>& leaves) {
  Builder build(graph);
  build.origin = origin;
  std::vector<bool> wanted(graph.values.size(), false);
  for (const ValueId leaf : leaves) wanted[leaf] = true;
  std::map<ValueId, ValueId> found;
  if (wanted[y]) found[y] = filled_like(build, y, 1);
  Backward backward(graph, build, wanted, y);
  for (const Node* node : backward.without_gradient())
    throw Error(fmt::format("node '{}' ({}) on the way has no gradient", node->origin, op_name(node->op)));
  if (!wanted[y] && backward.any()) backward.run(filled_like(build, y, 1), [&](ValueId leaf, ValueId gradient) { found[leaf] = gradient; });
  std::vector<ValueId> results;
  for (const ValueId leaf : leaves) {
    const auto gradient = found.find(leaf);
    results.push_back(gradient == found.end() ? filled_like(build, leaf, 0) : gradient->second);
  }
  return results;
}

}  // namespace

bool is_gradient(const OnnxNode& node) { return node.op == "Gradient" && node.domain == "ai.onnx.preview.training"; }

std::vector<std::string> gradient_names(const OnnxNode& node) {
  if (!is_gradient(node)) return {};
  std::vector<std::string> names = strings(node, "xs");
  for (std::string& z : strings(node, "zs")) names.push_back(std::move(z));
  names.push_back(target_name(node));
  return names;
}

void GraphDecoder::decode_gradient(const OnnxNode& node, const std::vector<ValueId>& inputs) {
  const std::vector<std::string> xs = strings(node, "xs"), named = [&] {
    std::vector<std::string> all = gradient_names(node);
    all.pop_back();
    return all;
  }();
  const std::string target = target_name(node);
  if (named.size() != inputs.size() || std::count(inputs.begin(), inputs.end(), kNone) > 0)
    throw Error(fmt::format("it has {} inputs for the {} values that xs and zs name", inputs.size(), named.size()));
  bool as_named = true;
  for (size_t i = 0; i < named.size(); ++i) as_named = as_named && find(named[i]) == inputs[i] && !build_.is_constant(inputs[i]);
  std::vector<ValueId> leaves = inputs;
  Builder plain(build_.graph());  // a copy that nothing folds away
  plain.origin = node.label();
  if (!as_named)
    for (ValueId& leaf : leaves) leaf = plain.add(OpKind::copy, {leaf});
  const ValueId y = as_named ? find(target) : evaluate_again(node, named, leaves, target);
  if (y == kNone) throw Error(fmt::format("'{}', which it is the gradient of, is not computed before it", target));
  leaves.resize(xs.size());
  if (build_.graph().nodes.size() > kMaxUnrolledNodes)
    throw Error(fmt::format("the graph has more than {} nodes here, too many to take gradients of", kMaxUnrolledNodes));
  const std::vector<ValueId> results = gradients(build_.graph(), node.label(), y, leaves);
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i) bind(node.outputs[i], results[i]);
}

// `target` with `inputs` in the place of the values `names`.
ValueId GraphDecoder::evaluate_again(const OnnxNode& node, const std::vector<std::string>& names, const std::vector<ValueId>& inputs,
                                     const std::string& target) {
  const std::vector<OnnxNode>& nodes = model_.graph.nodes;
  const auto own = std::find_if(nodes.begin(), nodes.end(), [&](const OnnxNode& n) { return is_gradient(n) && n.outputs == node.outputs; });
  if (own == nodes.end()) throw Error("its inputs are not the values that it names, which is supported in the main graph alone");
  const std::vector<bool> needed = needed_nodes(model_.graph, {target});
  std::set<std::string> changed(names.begin(), names.end());
  if (gradient_depth_ == kMaxBodyDepth) throw Error(fmt::format("Gradients that evaluate again nest deeper than {}", kMaxBodyDepth));
  const Nested nested(gradient_depth_);
  const Scope scope(*this);
  for (size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = inputs[i];
  for (auto i = 0; nodes.begin() + i != own; ++i) {
    if (!needed[i] || !depends(nodes[i], changed) || makes_any(nodes[i], names)) continue;
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) changed.insert(output);
    decode_node(nodes[i]);
  }
  return find(target);
}

}  // namespace zeroplan
