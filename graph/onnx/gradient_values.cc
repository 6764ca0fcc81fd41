#include <algorithm>
#include <optional>

#include "graph/onnx/decode.h"
#include "graph/onnx/roles.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

bool casts_to_integers(const OnnxNode& node) {
  if (node.op != "Cast" || !node.domain.empty()) return false;
  const std::optional<DType> dtype = graph_dtype(static_cast<int>(node.integer("to", 0)), DType::f32);
  return !dtype || !is_floating(*dtype);
}

// Operators without a decoder are compositions or loops: a gradient goes to all that they read.
class Reach {
 public:
  explicit Reach(const std::set<std::string>& wanted) { reached_.weights = wanted; }

  // Depth is bounded by the nesting limit of the file.
  void run(const OnnxGraph& graph) {
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const auto any = [&](const auto& names) {
        return std::any_of(node->outputs.begin(), node->outputs.end(), [&](const std::string& name) { return names.count(name) > 0; });
      };
      if (casts_to_integers(*node)) continue;
      if (any(reached_.weights) || (any(reached_.settings) && !moves_setting(*node))) run(*node);
    }
  }

  GradientValues take() { return std::move(reached_); }

 private:
  bool reaches(const std::string& name) const { return reached_.weights.count(name) > 0 || reached_.settings.count(name) > 0; }

  bool moves_setting(const OnnxNode& node) {
    const auto setting = reached_.settings.find(node.outputs[0]);
    if (node.inputs.empty() || setting == reached_.settings.end() || !find_decoder(node).path.moves) return false;
    reached_.settings.emplace(node.inputs[0], setting->second);
    return true;
  }

  void run(const OnnxNode& node) {
    const GradientPath path = find_decoder(node).path;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto place = static_cast<int>(i);
      if (node.inputs[i].empty() || !path.leads_to(place)) continue;
      if (path.is_setting(place))
        reached_.settings.emplace(node.inputs[i], path.setting);
      else
        reached_.weights.insert(node.inputs[i]);
    }
    run_inside(node);
  }

  // A branch gives the outputs of its If; what a loop gives once it may read again the next time, so all of its outputs count.
  void run_inside(const OnnxNode& node) {
    for (const OnnxAttribute& attribute : node.attributes) {
      if (!attribute.graph) continue;
      const std::vector<OnnxValueInfo>& outputs = attribute.graph->outputs;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const bool unused = node.op == "If" && (i >= node.outputs.size() || !reaches(node.outputs[i]));
        const bool condition = node.op == "Loop" && i == 0;
        if (!unused && !condition) reached_.weights.insert(outputs[i].name);
      }
      run(*attribute.graph);
    }
  }

  GradientValues reached_;
};

}  // namespace

UseMap find_uses(const OnnxGraph& graph, bool inside_nodes) {
  UseMap uses;
  for (const OnnxGraph* inner : inside_nodes ? all_graphs(graph) : std::vector{&graph})
    for (const OnnxNode& node : inner->nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (!node.inputs[i].empty()) uses[node.inputs[i]].push_back({&node, static_cast<int>(i)});
  return uses;
}

GradientValues gradient_values(const OnnxGraph& graph, const std::set<std::string>& wanted) {
  Reach reach(wanted);
  reach.run(graph);
  return reach.take();
}

}  // namespace zeroplan
