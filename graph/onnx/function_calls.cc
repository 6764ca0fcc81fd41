// Inlining has no limit of its own: what it would build is counted first.
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/proto_checks.h"

namespace zeroplan {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

std::string function_key(const std::string& domain, const std::string& name) {
  return (is_default_domain(domain) ? "" : domain) + "::" + name;
}

struct Calls {
  int64_t nodes = 0;                     // of the body, subgraphs included
  std::map<std::string, int64_t> times;  // called function -> calls
};

// Depth is bounded by kMaxMessageDepth.
void count_calls(const Nodes& nodes, const std::map<std::string, int>& functions, Calls& calls) {
  for (const auto& node : nodes) {
    ++calls.nodes;
    const std::string key = function_key(node.domain(), node.op_type());
    if (functions.count(key)) ++calls.times[key];
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count_calls(attribute.g().node(), functions, calls);
      for (const auto& graph : attribute.graphs()) count_calls(graph.node(), functions, calls);
    }
  }
}

class CallCounter {
 public:
  explicit CallCounter(const onnx::ModelProto& model) {
    for (int i = 0; i < model.functions_size(); ++i) ids_.emplace(function_key(model.functions(i).domain(), model.functions(i).name()), i);
    bodies_.resize(model.functions_size());
    for (int i = 0; i < model.functions_size(); ++i) count_calls(model.functions(i).node(), ids_, bodies_[i]);
    count_calls(model.graph().node(), ids_, main_);
    expanded_.assign(bodies_.size(), -1);
    open_.assign(bodies_.size(), false);
  }

  void check_all() {
    int64_t total = main_.nodes;
    for (const auto& [key, times] : main_.times) total = add(total, times, expand(ids_.at(key), 1));
    for (size_t i = 0; i < bodies_.size(); ++i) expand(static_cast<int>(i), 1);
  }

 private:
  static int64_t add(int64_t total, int64_t times, int64_t nodes) {
    total = checked_add(total, checked_mul(times, nodes));
    if (total > kMaxNodes)
      throw Error(fmt::format("the model's functions expand to more than {} nodes; export it without local functions", kMaxNodes));
    return total;
  }

  // Recursion is bounded by kMaxCallDepth.
  int64_t expand(int id, int depth) {
    if (expanded_[id] >= 0) return expanded_[id];
    const auto name = [&] {
      for (const auto& [key, index] : ids_)
        if (index == id) return key;
      return std::string();
    };
    if (open_[id]) throw Error(fmt::format("function '{}' of the model calls itself; recursion is not supported", name()));
    if (depth > kMaxCallDepth)
      throw Error(fmt::format("functions of the model call each other deeper than {} (at '{}'); inline them", kMaxCallDepth, name()));
    open_[id] = true;
    int64_t total = bodies_[id].nodes;
    for (const auto& [key, times] : bodies_[id].times) total = add(total, times, expand(ids_.at(key), depth + 1));
    open_[id] = false;
    return expanded_[id] = total;
  }

  std::map<std::string, int> ids_;
  std::vector<Calls> bodies_;
  Calls main_;
  std::vector<int64_t> expanded_;
  std::vector<bool> open_;
};

}  // namespace

void check_functions(const onnx::ModelProto& model) {
  if (model.functions_size() > 0) CallCounter(model).check_all();
}

}  // namespace zeroplan
