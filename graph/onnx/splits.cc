// Initializers that an exporter merged because their values were equal (fresh norms and biases, copied layers): one parameter per
// consumer again, with the name that the consumer's metadata, or the Identity node in front of it, still tells.
#include <algorithm>

#include <fmt/format.h>

#include "graph/onnx/roles.h"

namespace zeroplan {
namespace {

constexpr int64_t kMergedElements = 1024;  // PyTorch's exporter merges equal tensors up to this size

std::string last_component(const std::string& name) {
  const size_t at = name.rfind('.');
  return at == std::string::npos ? name : name.substr(at + 1);
}

// Without dots, so that a trained file tells it from a parameter.
std::string constant_name(std::string root) {
  std::replace(root.begin(), root.end(), '.', '_');
  return root + "_constant";
}

// What one reader had in place of the tensor.
struct Lost {
  enum class Kind : uint8_t { nothing, named, literal, unclear };
  Kind kind = Kind::nothing;
  std::string name;  // named: of the tensor; unclear: those that it could be
};

class Splitting {
 public:
  Splitting(const OnnxModel& model, WeightFiles& files, TieOptions& options, RolePlan& plan)
      : model_(model), files_(files), plan_(plan), tie_(options.tie), untie_(options.untie) {
    for (const auto& [name, original] : model.metadata.original) known_.insert(original);
    for (const auto& [name, sources] : model.metadata.folded_from) known_.insert(sources.begin(), sources.end());
    for (const auto& [argument, name] : model.metadata.target) arguments_.emplace(name, argument);
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
    std::vector<Lost> lost;
    for (const Use& reader : readers) lost.push_back(find_lost(c, reader));
    const auto told = std::find_if(lost.begin(), lost.end(), [](const Lost& l) { return l.kind != Lost::Kind::nothing; });
    const bool asked = untie_.matches(c.tensor->name) | untie_.matches(c.root);
    if (told == lost.end() && !asked) return;
    if (tie_.matches(c.tensor->name) | tie_.matches(c.root)) {
      plan_.report.push_back(fmt::format("'{}' was merged from several tensors and stays one parameter by --tie", c.tensor->name));
      return;
    }
    if (!asked && !is_merged(c, readers[told - lost.begin()])) {
      plan_.report.push_back(
          fmt::format("'{}' stands at node '{}' for '{}' and is one parameter with it, as it is larger than what exporters merge; --untie "
                      "parts them",
                      c.tensor->name, readers[told - lost.begin()].node->label(), told->name));
      return;
    }
    std::map<std::string, int> parameters;  // by lost name
    for (size_t i = 0; i < readers.size(); ++i) {
      if (!is_original(c, readers[i])) continue;
      if (asked && i > 0 && lost[i].name.empty())
        give_own(c, readers[i], fmt::format("{}.{}", c.root, readers[i].node->label()), "--untie", parameters);
      else
        give_lost(c, readers[i], lost[i], parameters);
    }
  }

  // TorchScript's exporter merges by value at any size, and puts an Identity node there; a weight that was one in the model has none.
  bool is_merged(const Candidate& c, const Use& use) const {
    return use.node->op == "Identity" || elements(c.tensor->shape) <= kMergedElements || is_constant_valued(files_, *c.tensor);
  }

  // The reading node is in the file as stored, so that an export can rewire it.
  bool is_original(const Candidate& c, const Use& use) const {
    if (use.node->outputs.empty()) return false;
    const auto note = model_.metadata.nodes.find(use.node->outputs[0]);
    if (note == model_.metadata.nodes.end()) return false;
    const std::vector<std::string>& inputs = note->second.inputs;
    return use.input < static_cast<int>(inputs.size()) && inputs[use.input] == c.tensor->name;
  }

  void give_lost(const Candidate& c, const Use& use, const Lost& lost, std::map<std::string, int>& parameters) {
    if (lost.kind == Lost::Kind::nothing || (!lost.name.empty() && tie_.matches(lost.name))) return;
    if (lost.kind == Lost::Kind::unclear) {
      plan_.problems.push_back(
          fmt::format("'{}' stands at node '{}' for one of {}, which the exporter merged into it, and it is not told for which; --tie '{}' "
                      "trains one for all, --untie '{}' one for each node that reads it",
                      c.tensor->name, use.node->label(), lost.name, c.tensor->name, c.tensor->name));
      return;
    }
    give_own(c, use, lost.name, "the exporter had merged it", parameters);
    Parameter& p = plan_.parameters[plan_.split_uses[{use.node->outputs[0], use.input}]];
    if (lost.kind == Lost::Kind::named && source_role(model_.metadata, lost.name) != Role::buffer) return;
    p.trainable = false;
    p.role_reason = fmt::format("a {} merged into {}", lost.kind == Lost::Kind::literal ? "constant" : "buffer", c.tensor->name);
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

  // The p_… name of a tensor, or of the one that it was folded from; empty where the file has none.
  std::string own_argument(const Candidate& c) const {
    const auto own = model_.metadata.original.find(c.tensor->name);
    if (own != model_.metadata.original.end()) return own->second;
    const auto folded = arguments_.find(c.root);
    return folded == arguments_.end() ? "" : folded->second;
  }

  std::string own_argument(const std::string& initializer) const {
    const auto found = plan_.by_name.find(initializer);
    return found == plan_.by_name.end() ? "" : own_argument(plan_.candidates[found->second]);
  }

  Lost find_lost(const Candidate& c, const Use& use) const {
    if (use.node->outputs.empty()) return {};
    const std::string& output = use.node->outputs[0];
    if (use.node->op == "Identity" && model_.producer.rfind("pytorch", 0) == 0 && output.find('.') != std::string::npos)
      return {Lost::Kind::named, output};
    const auto note = model_.metadata.nodes.find(output);
    const std::string own = own_argument(c);
    if (note == model_.metadata.nodes.end() || own.empty()) return {};
    const std::string argument = argument_at(note->second, use.input);
    if (!argument.empty()) return argument == own ? Lost{} : Lost{Lost::Kind::named, name_of(argument, c, note->second)};
    const std::vector<std::string>& named = note->second.fx_parameters;
    if (std::find(named.begin(), named.end(), own) != named.end()) return {};
    return lost_argument(c, note->second);
  }

  // Where the node reads as many tensors as its call names, they stand in the same order. Empty: that cannot be told.
  std::string argument_at(const NodeNote& note, int input) const {
    std::string found;
    size_t next = 0;
    for (int i = 0; i < static_cast<int>(note.inputs.size()); ++i) {
      const std::string own = own_argument(note.inputs[i]);
      if (own.empty()) continue;
      if (next == note.fx_parameters.size()) return "";
      const std::string& argument = note.fx_parameters[next++];
      if (argument != own && is_known(argument)) return "";
      if (i == input) found = argument;
    }
    return next == note.fx_parameters.size() ? found : "";
  }

  bool is_known(const std::string& argument) const {
    const auto target = model_.metadata.target.find(argument);
    return known_.count(argument) > 0 || (target != model_.metadata.target.end() && known_.count(target->second) > 0);
  }

  Lost lost_argument(const Candidate& c, const NodeNote& note) const {
    const std::string suffix = last_component(c.root);
    std::vector<std::string> lost, fitting;
    for (const std::string& argument : note.fx_parameters) {
      if (is_known(argument)) continue;
      lost.push_back(argument);
      const auto target = model_.metadata.target.find(argument);
      const bool fits =
          target == model_.metadata.target.end() ? argument.ends_with("_" + suffix) : last_component(target->second) == suffix;
      if (fits) fitting.push_back(argument);
    }
    if (lost.empty()) return is_literal(c, note) ? Lost{Lost::Kind::literal, constant_name(c.root)} : Lost{};
    if (fitting.size() == 1) lost = fitting;
    if (lost.size() > 1) return {Lost::Kind::unclear, fmt::format("'{}'", fmt::join(lost, "', '"))};
    return {Lost::Kind::named, name_of(lost[0], c, note)};
  }

  // A number that the call states, equal to the parameter: everything that the call names is computed.
  bool is_literal(const Candidate& c, const NodeNote& note) const {
    if (elements(c.tensor->shape) != 1 || !note.fx_parameters.empty() || note.fx_values < 0) return false;
    const auto computed = std::count_if(note.inputs.begin(), note.inputs.end(),
                                        [&](const std::string& input) { return !input.empty() && !plan_.by_name.count(input); });
    return computed >= note.fx_values;
  }

  std::string name_of(const std::string& argument, const Candidate& c, const NodeNote& note) const {
    const auto target = model_.metadata.target.find(argument);
    if (target != model_.metadata.target.end()) return target->second;
    const size_t scopes = note.scopes.size();
    return scopes >= 2 && !note.scopes[scopes - 2].empty() ? note.scopes[scopes - 2] + "." + last_component(c.root) : argument;
  }

  const OnnxModel& model_;
  WeightFiles& files_;
  RolePlan& plan_;
  Patterns &tie_, &untie_;
  std::set<std::string> known_;                   // p_… names and torch names that some tensor of the file still stands for
  std::map<std::string, std::string> arguments_;  // torch name -> p_…
};

}  // namespace

void split_merged(const OnnxModel& model, WeightFiles& files, TieOptions& options, const UseMap& uses, RolePlan& plan) {
  if (files.absent()) return;  // no bytes to look at
  Splitting(model, files, options, plan).run(uses);
}

}  // namespace zeroplan
