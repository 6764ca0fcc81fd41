#include "graph/ir/graph.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

std::string_view program_name(Program program) {
  constexpr std::string_view kNames[] = {"load", "micro_step", "update", "eval_step", "eval_end", "save"};
  return kNames[static_cast<size_t>(program)];
}

ValueId Graph::add_value(Value value) {
  const ValueId id = static_cast<ValueId>(values.size());
  value.name = unique_name(value.name);
  names_[value.name] = id;
  values.push_back(std::move(value));
  named_ = values.size();
  return id;
}

NodeId Graph::add_node(Node node) {
  const NodeId id = static_cast<NodeId>(nodes.size());
  for (ValueId output : node.outputs) values.at(output).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

void Graph::reindex() {
  for (Value& value : values) value.producer = kNone;
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id)
    for (ValueId output : nodes[id].outputs) values.at(output).producer = id;
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> users(values.size());
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id)
    for (ValueId input : nodes[id].inputs) {
      if (input == kNone) continue;
      std::vector<NodeId>& list = users.at(input);
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  return users;
}

ValueId Graph::find(const std::string& name) const {
  const auto known = names_.find(name);
  if (known != names_.end() && known->second < static_cast<ValueId>(values.size()) && values[known->second].name == name)
    return known->second;
  for (ValueId id = 0; id < static_cast<ValueId>(values.size()); ++id)
    if (values[id].name == name) return id;
  return kNone;
}

void Graph::rename(ValueId id, const std::string& name) {
  if (values.at(id).name == name) return;
  values[id].name.clear();
  values[id].name = unique_name(name);
  names_[values[id].name] = id;
}

bool Graph::is_taken(const std::string& name) const {
  const auto known = names_.find(name);
  return known != names_.end() && known->second < static_cast<ValueId>(values.size()) && values[known->second].name == name;
}

std::string Graph::unique_name(const std::string& wanted) {
  if (named_ > values.size()) {  // values were erased: ids moved
    names_.clear();
    named_ = 0;
  }
  for (; named_ < values.size(); ++named_) names_[values[named_].name] = static_cast<ValueId>(named_);
  std::string name = wanted.empty() ? fmt::format("value_{}", values.size()) : wanted;
  const std::string stem = name;
  for (int64_t suffix = 1; is_taken(name); ++suffix) name = fmt::format("{}.{}", stem, suffix);
  return name;
}

}  // namespace zeroplan
