#include "graph/onnx/roles.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/batch_norms.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

void apply_train(Patterns& train, const OnnxModel& model, RolePlan& plan) {
  for (Candidate& c : plan.candidates) {
    const bool by_name = train.matches(c.tensor->name), by_root = train.matches(c.root);
    if ((!by_name && !by_root) || c.role == Role::parameter) continue;
    if (!is_floating_type(c.tensor->type) && !c.quantization) {
      plan.problems.push_back(fmt::format("--train matches the quantised '{}', which cannot be trained: {}", c.tensor->name, c.reason));
      continue;
    }
    c.role = Role::parameter;
    c.reason = "--train";
  }
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxTensor& tensor : graph->initializers)
      if (!is_floating_type(tensor.type) && !plan.by_name.count(tensor.name) && train.matches(tensor.name))
        plan.problems.push_back(fmt::format("--train matches '{}', which holds {} values; only floating-point tensors can be trained",
                                            tensor.name, onnx_type_name(tensor.type)));
}

bool is_frozen(const TrainingFacts& training, const Parameter& p) {
  const auto role = training.roles.find(p.source.initializer);
  return role != training.roles.end() && !role->second;
}

void apply_freeze(const TrainingFacts& training, Patterns& freeze, Patterns& train, RolePlan& plan) {
  for (Parameter& p : plan.parameters) {
    std::vector<std::string> names = {p.name, p.source.initializer};
    for (const ParameterAlias& alias : p.aliases) names.push_back(alias.initializer);
    bool frozen = false, trained = false;
    for (const std::string& name : names) {
      frozen |= freeze.matches(name);
      trained |= train.matches(name);
    }
    if (frozen && p.statistics)
      plan.problems.push_back(fmt::format(
          "--freeze matches '{0}', the running statistics of a batch normalization that uses those of its batch: they follow the "
          "batches whatever is trained. --eval-bn '{0}' keeps them and normalizes with them; or leave them out of the pattern",
          p.name));
    if (trained && p.trainable) p.role_reason = "--train";
    if (trained || p.statistics || (!frozen && !is_frozen(training, p))) continue;
    p.trainable = false;
    if (frozen) p.role_reason = "--freeze";
  }
}

// Two parameters may not share a name: the later takes that of its initializer, or a number.
void unique_names(RolePlan& plan) {
  std::set<std::string> taken;
  for (Parameter& p : plan.parameters) {
    if (taken.count(p.name)) p.name = p.source.initializer;
    const std::string stem = p.name;
    for (int suffix = 2; taken.count(p.name); ++suffix) p.name = fmt::format("{}.{}", stem, suffix);
    taken.insert(p.name);
  }
}

}  // namespace

void make_parameter(Candidate& c, const ImportOptions& options, RolePlan& plan) {
  const OnnxTensor& tensor = *c.tensor;
  if (elements(tensor.shape) == 0) {
    c.role = Role::constant;
    c.reason = "empty";
  } else if (!tensor.in_file) {
    plan.problems.push_back(fmt::format(
        "parameter '{}' is stored element by element, so that it cannot be located; save the model with raw data", tensor.name));
  } else {
    c.parameter = static_cast<int>(plan.parameters.size());
    Parameter p;
    p.name = c.root;
    p.dtype = options.precision;
    p.shape = tensor.shape;
    p.source = tensor.source;
    p.source.quantization = c.quantization;
    p.role_reason = c.reason;
    plan.parameters.push_back(std::move(p));
  }
}

RolePlan plan_roles(const OnnxModel& model, WeightFiles& files, const ImportOptions& options, const std::set<std::string>& wanted) {
  RolePlan plan;
  Patterns train("--train", options.train), freeze("--freeze", options.freeze);
  const UseMap uses = find_uses(model.graph);
  find_candidates(model, files, uses, wanted, options.outputs.empty(), plan);
  apply_train(train, model, plan);
  for (Candidate& c : plan.candidates)
    if (c.role == Role::parameter) make_parameter(c, options, plan);
  BatchNorms batch_norms(model, options, plan);
  batch_norms.make_parameters(options);
  TieOptions ties{{"--tie", options.tie}, {"--untie", options.untie}};
  for (const Candidate& c : plan.candidates)
    for (const std::string* name : {&c.tensor->name, &c.root}) {  // marks the patterns that match
      if (c.parameter < 0) continue;
      ties.tie.matches(*name);
      ties.untie.matches(*name);
    }
  tie_copies(model, files, ties, uses, plan);
  unique_names(plan);
  split_merged(model, files, ties, find_uses(model.graph, false), plan);
  batch_norms.mark_statistics();
  unique_names(plan);
  for (const Candidate& c : plan.candidates) freeze.matches(c.tensor->name);  // a buffer is frozen already
  apply_freeze(model.training, freeze, train, plan);
  batch_norms.report(options);
  refuse_folded(plan);
  report_folded(model.metadata, plan);
  report_guessed(model, plan);
  report_stored(options.precision, plan);
  report_dropped(model.metadata, plan);
  report_dropout(model, plan);
  fill_rows(model, plan);
  for (const Patterns* patterns : {&train, &freeze, &ties.tie, &ties.untie})
    for (std::string& line : patterns->unused()) plan.problems.push_back(std::move(line));
  return plan;
}

}  // namespace zeroplan
