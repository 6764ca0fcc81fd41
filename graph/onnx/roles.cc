#include "graph/onnx/roles.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/type_name.h"
#include "graph/onnx/batch_norms.h"
#include "graph/onnx/literals.h"
#include "graph/onnx/stored_weight.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

bool named_like_parameter(const std::string& name) {
  const auto ends = [&](const char* tail) { return name.size() > std::char_traits<char>::length(tail) && name.ends_with(tail); };
  return name.find('.') != std::string::npos && (ends("weight") || ends("bias"));
}

// Role of a name of the original model: by the exporter's signature, else by the kind of the untouched tensor, else by its looks.

void by_folding(const ExporterMetadata& m, const std::vector<std::string>& sources, Candidate& c) {
  std::vector<std::string> parameters;
  for (const std::string& source : sources) {
    const Role role = source_role(m, source);
    if (role == Role::parameter) parameters.push_back(source);
    if (role == Role::buffer && parameters.empty()) c.role = Role::buffer;
  }
  if (parameters.empty()) {
    c.reason = c.role == Role::buffer ? "folded from a buffer" : "folded from constants";
    return;
  }
  c.role = Role::parameter;
  if (parameters.size() == 1) c.root = parameters[0];
  c.reason = "folded from " + parameters[0];
}

// False: the file says nothing on this tensor.
bool by_metadata(const ExporterMetadata& m, Candidate& c) {
  const std::string& name = c.tensor->name;
  const auto kind = m.kind.find(name);
  if (kind != m.kind.end() && (kind->second == "PARAMETER" || kind->second == "BUFFER")) {
    c.role = kind->second == "PARAMETER" ? Role::parameter : Role::buffer;
    c.reason = "exporter metadata: " + kind->second;
    return true;
  }
  const auto folded = m.folded_from.find(name);
  if (folded != m.folded_from.end()) {
    by_folding(m, folded->second, c);
    return true;
  }
  const auto stated = m.target_kind.find(name);
  if (stated != m.target_kind.end()) {
    c.role = source_role(m, name);
    c.reason = "exporter metadata: " + stated->second;
    return true;
  }
  if (!m.torch) return false;
  // The exporter names values val_3, slice_1; what kept a dotted name came from the module tree.
  c.role = name.find('.') != std::string::npos ? Role::parameter : Role::constant;
  c.reason = c.role == Role::parameter ? "named in the module tree" : "anonymous in a file with exporter metadata";
  return true;
}

// False: the file says nothing on training. Frozen ones are parameters until apply_freeze.
bool by_training(const TrainingFacts& training, Candidate& c) {
  if (training.roles.empty()) return false;
  const auto role = training.roles.find(c.tensor->name);
  c.role = role == training.roles.end() ? Role::constant : Role::parameter;
  c.reason = role == training.roles.end() ? fmt::format("not named by {}", training.stated_by)
                                          : fmt::format("{} by {}", role->second ? "trained" : "frozen", training.stated_by);
  return true;
}

bool holds_infinity(WeightFiles& files, const OnnxTensor& tensor) {
  if (files.absent() || !tensor.in_file || !is_floating_type(tensor.type)) return false;
  std::vector<double> first(std::min<int64_t>(elements(tensor.shape), 4096));
  read_weight(files, tensor.source, 0, static_cast<int64_t>(first.size()), DType::f64, first.data());
  return std::any_of(first.begin(), first.end(), [](double x) { return std::isinf(x); });
}

// Gradients reach exponents too, but most are constants of the model: one is trained only where the file or --train says so.
bool is_exponent(const std::vector<Use>& readers, const std::set<std::string>& reached) {
  return std::any_of(readers.begin(), readers.end(), [&](const Use& use) {
    return use.node->op == "Pow" && use.input == 1 && !use.node->outputs.empty() && reached.count(use.node->outputs[0]);
  });
}

// The state that a recurrent operator starts from, where it is the same for all units: no weight, but "nothing seen yet".
bool is_initial_state(WeightFiles& files, const OnnxTensor& tensor, const std::vector<Use>& readers) {
  const bool states = std::all_of(readers.begin(), readers.end(), [](const Use& use) {
    return (use.node->op == "LSTM" || use.node->op == "GRU" || use.node->op == "RNN") && (use.input == 5 || use.input == 6);
  });
  const bool readable = tensor.in_file && !files.absent() && is_floating_type(tensor.type);
  return states && !readers.empty() && readable && is_constant_valued(files, tensor);
}

void decide(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const std::set<std::string>& reached, bool constant_node,
            Candidate& c) {
  c.root = c.tensor->name;
  const bool known = by_training(model.training, c) || by_metadata(model.metadata, c);
  if (known && c.role != Role::parameter) return;
  const auto readers = uses.find(c.tensor->name);
  if (!reached.count(c.tensor->name)) {
    const bool exponent = readers != uses.end() && is_exponent(readers->second, reached);
    if (known && exponent) return;
    c.role = Role::constant;
    c.reason = readers == uses.end() ? "unused" : exponent ? "an exponent; --train trains it" : "no gradient path to the loss";
    return;
  }
  if (known) return;
  if (const char* literal = readers == uses.end() ? nullptr : literal_reason(model, *c.tensor, readers->second, uses)) {
    c.role = Role::constant;
    c.reason = literal;
    return;
  }
  c.role = Role::parameter;
  c.reason = constant_node ? "floating-point Constant on a gradient path" : "floating-point initializer on a gradient path";
  const bool empty = elements(c.tensor->shape) == 0;
  const bool state = !empty && readers != uses.end() && is_initial_state(files, *c.tensor, readers->second);
  if (!empty && !state && !holds_infinity(files, *c.tensor)) return;
  c.role = Role::constant;
  c.reason = empty ? "empty" : state ? "initial state of equal values; --train trains it" : "holds infinities, as masks do";
}

// The name that the weight of a folded transpose had: node /net/h.0/attn/MatMul gives net.h.0.attn.weight.
void recover_name(const OnnxModel& model, const UseMap& uses, const std::map<std::string, int>& names, Candidate& c) {
  if (c.root != c.tensor->name || c.root.rfind("onnx::MatMul", 0) != 0 || model.producer.rfind("pytorch", 0) != 0) return;
  const auto readers = uses.find(c.tensor->name);
  if (readers == uses.end() || readers->second.size() != 1 || readers->second[0].node->op != "MatMul") return;
  const std::string& node = readers->second[0].node->name;
  const size_t slash = node.rfind('/');
  if (slash == std::string::npos || slash == 0 || node[0] != '/') return;
  std::string name = node.substr(1, slash - 1) + ".weight";
  std::replace(name.begin(), name.end(), '/', '.');
  if (!names.count(name)) c.root = name;
}

void add_candidates(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const std::set<std::string>& reached, RolePlan& plan) {
  const auto add = [&](const OnnxTensor& tensor, bool constant_node) {
    Candidate c;
    c.tensor = &tensor;
    decide(model, files, uses, reached, constant_node, c);
    plan.by_name[tensor.name] = static_cast<int>(plan.candidates.size());
    plan.candidates.push_back(std::move(c));
  };
  const bool in_constants = weights_are_constants(model);
  for (const OnnxGraph* graph : all_graphs(model.graph)) {
    for (const OnnxTensor& tensor : graph->initializers)
      if (is_floating_type(tensor.type)) add(tensor, false);
    for (const OnnxNode& node : graph->nodes) {
      const OnnxAttribute* value = node.op == "Constant" && node.domain.empty() ? node.find("value") : nullptr;
      if (!value || !value->tensor.in_file || !is_floating_type(value->tensor.type)) continue;
      const OnnxTensor& tensor = value->tensor;
      const auto readers = uses.find(tensor.name);
      if (model.metadata.torch || readers == uses.end()) continue;
      if (constant_may_be_weight(tensor, readers->second, in_constants)) add(tensor, true);
    }
  }
  for (Candidate& c : plan.candidates)
    if (c.role == Role::parameter) recover_name(model, uses, plan.by_name, c);
}

void apply_train(Patterns& train, const OnnxModel& model, RolePlan& plan) {
  for (Candidate& c : plan.candidates) {
    const bool by_name = train.matches(c.tensor->name), by_root = train.matches(c.root);
    if ((!by_name && !by_root) || c.role == Role::parameter) continue;
    c.role = Role::parameter;
    c.reason = "--train";
  }
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxTensor& tensor : graph->initializers)
      if (!is_floating_type(tensor.type) && train.matches(tensor.name))
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

bool is_float_type(int type) { return type == kOnnxFloat || type == kOnnxDouble || type == kOnnxFloat16 || type == kOnnxBfloat16; }

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
    p.role_reason = c.reason;
    plan.parameters.push_back(std::move(p));
  }
}

Role source_role(const ExporterMetadata& m, const std::string& source) {
  const auto signed_kind = m.target_kind.find(source);
  if (signed_kind != m.target_kind.end()) return signed_kind->second == "PARAMETER" ? Role::parameter : Role::buffer;
  const auto kind = m.kind.find(source);
  if (kind != m.kind.end()) return kind->second == "PARAMETER" ? Role::parameter : Role::buffer;
  if (named_like_parameter(source)) return Role::parameter;
  return source.find('.') != std::string::npos ? Role::buffer : Role::constant;
}

RolePlan plan_roles(const OnnxModel& model, WeightFiles& files, const ImportOptions& options, const std::set<std::string>& wanted) {
  RolePlan plan;
  Patterns train("--train", options.train), freeze("--freeze", options.freeze);
  const UseMap uses = find_uses(model.graph);
  add_candidates(model, files, uses, gradient_values(model.graph, wanted), plan);
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
