#include "graph/onnx/nested_tensors.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "graph/onnx/proto_checks.h"

namespace zeroplan {
namespace {

// The value that a node defines as a stored tensor; nullptr where it is no such node.
std::string* stored_value(onnx::NodeProto& node) { return stores_tensor(node) ? node.mutable_output(0) : nullptr; }

// All recursion here is bounded by kMaxMessageDepth.
template <typename Fn>
void for_each_subgraph(onnx::NodeProto& node, Fn&& fn) {
  for (int a = 0; a < node.attribute_size(); ++a)
    if (node.attribute(a).has_g()) fn(a, *node.mutable_attribute(a)->mutable_g());
}

void count_definitions(onnx::GraphProto& graph, std::map<std::string, int>& times) {
  std::map<std::string, int> own;
  for (const auto& input : graph.input()) own[input.name()] = 1;
  for (const auto& tensor : graph.initializer()) own[tensor.name()] = 1;
  for (auto& node : *graph.mutable_node()) {
    for (const std::string& output : node.output()) ++own[output];
    for_each_subgraph(node, [&](int, onnx::GraphProto& sub) { count_definitions(sub, times); });
  }
  for (const auto& [name, count] : own) times[name] += count;
}

struct Found {
  NestedTensor nested;
  std::string old;
};

class Collector {
 public:
  explicit Collector(onnx::GraphProto& graph) {
    count_definitions(graph, times_);
    visit_nodes(graph, {});
  }
  std::vector<Found> found;

 private:
  void visit_nodes(onnx::GraphProto& graph, const TensorPath& outside) {
    for (int n = 0; n < graph.node_size(); ++n) {
      TensorPath path = outside;
      path.insert(path.end(), {n, 0});
      onnx::NodeProto& node = *graph.mutable_node(n);
      if (std::string* value = outside.empty() ? nullptr : stored_value(node)) add(path, node.mutable_attribute(0)->mutable_t(), *value);
      for_each_subgraph(node, [&](int a, onnx::GraphProto& sub) {
        path.back() = a;
        visit_initializers(sub, path);
        visit_nodes(sub, path);
      });
    }
  }

  void visit_initializers(onnx::GraphProto& graph, TensorPath path) {
    path.push_back(0);
    for (int i = 0; i < graph.initializer_size(); ++i) {
      path.back() = i;
      add(path, graph.mutable_initializer(i), graph.initializer(i).name());
    }
  }

  void add(const TensorPath& path, onnx::TensorProto* tensor, const std::string& name) {
    std::string unique = name;
    if (times_[name] > 1)
      for (int& number = next_[name]; times_.count(unique); ++number) unique = fmt::format("{}#{}", name, number + 2);
    times_.emplace(unique, 1);
    found.push_back({{path, tensor, unique}, name});
  }

  std::map<std::string, int> times_, next_;
};

// One walk over all graphs; in each, the names that it defines itself come before those of the graphs around it.
class Renaming {
 public:
  explicit Renaming(const std::vector<Found>& found) {
    for (const Found& f : found) {
      if (f.nested.name == f.old) continue;
      new_names_[f.nested.tensor] = f.nested.name;
      old_names_.insert(f.old);
    }
  }

  void run(onnx::GraphProto& graph) {
    if (old_names_.empty()) return;
    scopes_.push_back(define(graph));
    for (auto& node : *graph.mutable_node()) {
      for (std::string& input : *node.mutable_input()) input = current(input);
      for_each_subgraph(node, [&](int, onnx::GraphProto& sub) { run(sub); });
    }
    for (auto& output : *graph.mutable_output()) output.set_name(current(output.name()));
    scopes_.pop_back();
  }

 private:
  using Names = std::map<std::string, std::string>;

  Names define(onnx::GraphProto& graph) {
    Names own;
    for (const auto& input : graph.input()) own.emplace(input.name(), input.name());
    for (auto& tensor : *graph.mutable_initializer()) tensor.set_name(define(own, &tensor, tensor.name()));
    for (auto& input : *graph.mutable_input()) input.set_name(own.at(input.name()));
    for (auto& node : *graph.mutable_node()) {
      if (std::string* value = stored_value(node))
        *value = define(own, node.mutable_attribute(0)->mutable_t(), *value);
      else
        for (const std::string& output : node.output()) own.emplace(output, output);
    }
    for (auto at = own.begin(); at != own.end();) at = old_names_.count(at->first) ? std::next(at) : own.erase(at);
    return own;
  }

  std::string define(Names& own, const onnx::TensorProto* tensor, const std::string& old) const {
    const auto renamed = new_names_.find(tensor);
    const std::string name = renamed == new_names_.end() ? old : renamed->second;
    own[old] = name;
    return name;
  }

  std::string current(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return name;
  }

  std::map<const onnx::TensorProto*, std::string> new_names_;
  std::set<std::string> old_names_;
  std::vector<Names> scopes_;
};

}  // namespace

std::vector<NestedTensor> nested_tensors(onnx::GraphProto& graph) {
  std::vector<NestedTensor> list;
  for (Found& f : Collector(graph).found) list.push_back(std::move(f.nested));
  return list;
}

void rename_nested(onnx::GraphProto& graph) {
  const Collector collected(graph);
  Renaming(collected.found).run(graph);
}

}  // namespace zeroplan
