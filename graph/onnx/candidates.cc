// Which tensors of a model could be parameters, and what each is: the user's patterns come later.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "graph/onnx/literals.h"
#include "graph/onnx/quantised_weights.h"
#include "graph/onnx/roles.h"
#include "graph/onnx/stored_weight.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

bool named_like_parameter(const std::string& name) {
  const auto ends = [&](const char* tail) { return name.size() > std::char_traits<char>::length(tail) && name.ends_with(tail); };
  return name.find('.') != std::string::npos && (ends("weight") || ends("bias"));
}

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

// The state that a recurrent operator starts from, where it is the same for all units: no weight, but "nothing seen yet".
bool is_initial_state(WeightFiles& files, const OnnxTensor& tensor, const std::vector<Use>& readers) {
  const bool states = std::all_of(readers.begin(), readers.end(), [](const Use& use) {
    return (use.node->op == "LSTM" || use.node->op == "GRU" || use.node->op == "RNN") && (use.input == 5 || use.input == 6);
  });
  const bool readable = tensor.in_file && !files.absent() && is_floating_type(tensor.type);
  return states && !readers.empty() && readable && is_constant_valued(files, tensor);
}

// ONNX Runtime's quantiser makes X_quantized and X_scale of a weight X; the product of two such scales multiplies a product of integers.
bool is_scale_of_integers(const std::string& name, const UseMap& uses) {
  constexpr std::string_view kEnd = "_scale";
  return name.ends_with(kEnd) && uses.count(name.substr(0, name.size() - kEnd.size()) + "_quantized");
}

void leave_as_number(Candidate& c, const std::string& why) {
  c.role = Role::constant;
  c.number = true;
  c.reason = why + "; --train trains it";
}

void decide(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const GradientValues& reached, bool constant_node,
            Candidate& c) {
  c.root = c.tensor->name;
  const bool known = by_training(model.training, c) || by_metadata(model.metadata, c);
  if (known && c.role != Role::parameter) return;
  const auto readers = uses.find(c.tensor->name);
  if (!reached.weights.count(c.tensor->name)) {
    const auto setting = reached.settings.find(c.tensor->name);  // most are numbers of the model
    if (setting != reached.settings.end()) {
      if (!known) leave_as_number(c, setting->second);
      return;
    }
    c.role = Role::constant;
    c.reason = readers == uses.end() ? "unused" : "no gradient path to the loss";
    return;
  }
  if (model.training.roles.empty() && is_scale_of_integers(c.tensor->name, uses)) return leave_as_number(c, "the scale of integers");
  if (known) return;
  if (c.quantization) {
    c.role = Role::parameter;
    c.reason = "quantised weight on a gradient path";
    return;
  }
  if (constant_node && constants_are_numbers(model)) return leave_as_number(c, "a Constant node where weights are initializers");
  if (const char* literal = readers == uses.end() ? nullptr : literal_reason(model, *c.tensor, readers->second, uses))
    return leave_as_number(c, literal);
  c.role = Role::parameter;
  c.reason = constant_node ? "floating-point Constant on a gradient path" : "floating-point initializer on a gradient path";
  const bool empty = elements(c.tensor->shape) == 0;
  const bool state = !empty && readers != uses.end() && is_initial_state(files, *c.tensor, readers->second);
  if (state) return leave_as_number(c, "initial state of equal values");
  if (!empty && !holds_infinity(files, *c.tensor)) return;
  c.role = Role::constant;
  c.reason = empty ? "empty" : "holds infinities, as masks do";
}

}  // namespace

// By the exporter's signature, else by the kind of the untouched tensor, else by the looks of its name.
Role source_role(const ExporterMetadata& m, const std::string& source) {
  const auto signed_kind = m.target_kind.find(source);
  if (signed_kind != m.target_kind.end()) return signed_kind->second == "PARAMETER" ? Role::parameter : Role::buffer;
  const auto kind = m.kind.find(source);
  if (kind != m.kind.end()) return kind->second == "PARAMETER" ? Role::parameter : Role::buffer;
  if (named_like_parameter(source)) return Role::parameter;
  return source.find('.') != std::string::npos ? Role::buffer : Role::constant;
}

namespace {

void add_candidates(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const GradientValues& reached, RolePlan& plan) {
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

// Integers with a scale. Where nothing is trained they are constants like any other.
void add_quantised(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const GradientValues& reached, RolePlan& plan) {
  const TensorMap stored = stored_tensors(model.graph);
  for (const auto& [name, tensor] : stored) {
    const auto readers = uses.find(name);
    if (readers == uses.end() || !tensor->in_file || plan.by_name.count(name)) continue;
    const std::optional<QuantisedWeight> weight = quantised_weight(*tensor, readers->second, stored);
    if (!weight) continue;
    Candidate c;
    c.tensor = tensor;
    c.quantization = weight->quantization;
    c.root = name;
    if (c.quantization)
      decide(model, files, uses, reached, false, c);
    else
      c.reason = weight->why;
    if (c.quantization)
      for (const std::string& part : {c.quantization->scale.initializer, c.quantization->zero_point.initializer})
        if (!part.empty()) plan.scales[part] = stored.at(part);
    plan.by_name[name] = static_cast<int>(plan.candidates.size());
    plan.candidates.push_back(std::move(c));
  }
}

}  // namespace

void find_candidates(const OnnxModel& model, WeightFiles& files, const UseMap& uses, const std::set<std::string>& wanted, bool trains,
                     RolePlan& plan) {
  const GradientValues reached = gradient_values(model.graph, wanted);
  add_candidates(model, files, uses, reached, plan);
  if (trains) add_quantised(model, files, uses, reached, plan);
}

}  // namespace zeroplan
