// Initializers that an exporter merged because their values were equal (fresh norms and biases): one parameter per consumer again, with
// the name that the consumer's metadata, or the Identity node in front of it, still tells.
#include <algorithm>

#include <fmt/format.h>

#include "graph/onnx/roles.h"

namespace zeroplan {
namespace {

std::string last_component(const std::string& name, char separator) {
  const size_t at = name.rfind(separator);
  return at == std::string::npos ? name : name.substr(at + 1);
}

class Splitting {
 public:
  Splitting(const OnnxModel& model, WeightFiles& files, TieOptions& options, RolePlan& plan)
      : model_(model), files_(files), plan_(plan), tie_(options.tie), untie_(options.untie) {
    for (const auto& [name, original] : model.metadata.original) known_.insert(original);
    for (const auto& [name, sources] : model.metadata.folded_from) known_.insert(sources.begin(), sources.end());
  }

  void run(const UseMap& uses) {
    const size_t candidates = plan_.candidates.size();
    for (size_t i = 0; i < candidates; ++i) {
      const Candidate c = plan_.candidates[i];
      const auto readers = uses.find(c.tensor->name);
      if (c.parameter < 0 || readers == uses.end() || readers->second.size() < 2) continue;
      if (plan_.parameters[c.parameter].source.initializer != c.tensor->name) continue;  // an alias
      split(c, readers->second);
    }
  }

 private:
  void split(const Candidate& c, const std::vector<Use>& readers) {
    std::vector<std::string> names(readers.size());
    bool any = false;
    for (size_t i = 0; i < readers.size(); ++i) {
      names[i] = lost_name(c, readers[i]);
      any |= !names[i].empty();
    }
    const bool asked = untie_.matches(c.tensor->name) | untie_.matches(c.root);
    const bool merged = any && is_constant_valued(files_, *c.tensor);
    if (!merged && !asked) return;
    if (tie_.matches(c.tensor->name) | tie_.matches(c.root)) {
      plan_.report.push_back(fmt::format("'{}' was merged from several tensors and stays one parameter by --tie", c.tensor->name));
      return;
    }
    std::map<std::string, int> parameters;  // by lost name
    for (size_t i = 0; i < readers.size(); ++i) {
      std::string name = merged ? names[i] : "";
      if (name.empty() && asked && i > 0) name = fmt::format("{}.{}", c.root, readers[i].node->label());
      if (!name.empty() && !tie_.matches(name) && is_original(c, readers[i]))
        give_own(c, readers[i], name, merged ? "the exporter had merged it" : "--untie", parameters);
    }
  }

  // The reading node is in the file as stored, so that an export can rewire it.
  bool is_original(const Candidate& c, const Use& use) const {
    const auto note = model_.metadata.nodes.find(use.node->outputs.empty() ? "" : use.node->outputs[0]);
    if (note == model_.metadata.nodes.end()) return false;
    const std::vector<std::string>& inputs = note->second.inputs;
    return use.input < static_cast<int>(inputs.size()) && inputs[use.input] == c.tensor->name;
  }

  void give_own(const Candidate& c, const Use& use, const std::string& name, const char* why, std::map<std::string, int>& parameters) {
    const auto [found, added] = parameters.emplace(name, static_cast<int>(plan_.parameters.size()));
    if (added) {
      Parameter p = plan_.parameters[c.parameter];
      p.name = name;
      p.aliases.clear();
      p.split_uses.clear();
      p.role_reason = fmt::format("split from {}", c.tensor->name);
      plan_.parameters.push_back(std::move(p));
      plan_.report.push_back(
          fmt::format("split: '{}' is a parameter of its own at node '{}' ({} into '{}')", name, use.node->label(), why, c.tensor->name));
    }
    plan_.parameters[found->second].split_uses.emplace_back(use.node->label(), use.input);
    plan_.split_uses[{use.node->outputs[0], use.input}] = found->second;
  }

  // Empty: the use is the tensor's own, or nothing is told.
  std::string lost_name(const Candidate& c, const Use& use) const {
    if (use.node->outputs.empty()) return "";
    const std::string& output = use.node->outputs[0];
    if (use.node->op == "Identity") return model_.producer.rfind("pytorch", 0) == 0 && output.find('.') != std::string::npos ? output : "";
    const auto note = model_.metadata.nodes.find(output);
    if (note == model_.metadata.nodes.end()) return "";
    const std::vector<std::string>& named = note->second.fx_parameters;
    const auto own = model_.metadata.original.find(c.tensor->name);
    if (own == model_.metadata.original.end() || std::find(named.begin(), named.end(), own->second) != named.end()) return "";
    return lost_argument(c, note->second);
  }

  std::string lost_argument(const Candidate& c, const NodeNote& note) const {
    const std::string suffix = last_component(c.root, '.');
    std::vector<std::string> lost, fitting;
    for (const std::string& argument : note.fx_parameters) {
      const auto target = model_.metadata.target.find(argument);
      const std::string name = target == model_.metadata.target.end() ? "" : target->second;
      if (known_.count(argument) || (!name.empty() && known_.count(name))) continue;
      lost.push_back(argument);
      if (last_component(argument, '_') == suffix) fitting.push_back(argument);
    }
    if (fitting.size() == 1) lost = fitting;
    if (lost.size() != 1) return "";
    const auto target = model_.metadata.target.find(lost[0]);
    if (target != model_.metadata.target.end()) return target->second;
    if (note.scopes.size() >= 2 && !note.scopes[note.scopes.size() - 2].empty()) return note.scopes[note.scopes.size() - 2] + "." + suffix;
    return lost[0];
  }

  const OnnxModel& model_;
  WeightFiles& files_;
  RolePlan& plan_;
  Patterns &tie_, &untie_;
  std::set<std::string> known_;  // p_… names and torch names that some tensor of the file still stands for
};

}  // namespace

void split_merged(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan) {
  if (files.absent()) return;  // no bytes to look at
  Splitting(model, files, options, plan).run(uses);
}

}  // namespace zeroplan
