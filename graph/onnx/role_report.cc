// What is said of roles: the table, and values that an exporter computed from parameters.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/type_name.h"
#include "graph/onnx/roles.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {

// Trained apart, the two would no longer be one weight and a value made of it.
void refuse_folded(RolePlan& plan) {
  const auto trained = [&](const std::string& name) {
    const int index = plan.candidates[plan.by_name.at(name)].parameter;
    return index >= 0 && plan.parameters[index].trainable && plan.parameters[index].role_reason != "--train";
  };
  for (const auto& [part, whole] : plan.folded)
    if (trained(part) && trained(whole))
      plan.problems.push_back(fmt::format(
          "'{}' is a value that the exporter computed from the parameter '{}', which is trained too; export without folding of constants "
          "(torch.onnx.export(..., optimize=False)), or choose with --freeze {}, or --untie {} to train two",
          part, whole, part, part));
}

// An expression of parameters that the exporter computed: trained by itself, it no longer follows from them.
void report_folded(const ExporterMetadata& m, RolePlan& plan) {
  std::map<std::string, int> by_root;  // name in the original model -> parameter stored as it was
  for (const Candidate& c : plan.candidates)
    if (c.parameter >= 0 && !m.folded_from.count(c.tensor->name)) by_root[c.root] = c.parameter;
  for (const Candidate& c : plan.candidates) {
    const auto folded = m.folded_from.find(c.tensor->name);
    if (c.parameter < 0 || folded == m.folded_from.end() || !plan.parameters[c.parameter].trainable) continue;
    std::string names;
    int sources = 0;
    bool apart = false;
    for (const std::string& source : folded->second) {
      if (source_role(m, source) != Role::parameter) continue;
      names += (sources++ > 0 ? ", " : "") + source;
      const auto root = by_root.find(source);
      apart |= root != by_root.end() && root->second != c.parameter;
    }
    if (apart || sources > 1)
      plan.report.push_back(
          fmt::format("'{}' was computed by the exporter from {} and is trained as a tensor of its own; --freeze keeps it as it is",
                      c.tensor->name, names));
  }
}

// Models of `zeroplan new` have no buffers.
void report_guessed(const OnnxModel& model, RolePlan& plan) {
  const bool told =
      model.metadata.torch || !model.metadata.kind.empty() || !model.training.roles.empty() || model.producer.rfind("zeroplan", 0) == 0;
  const auto guessed = std::count_if(plan.parameters.begin(), plan.parameters.end(),
                                     [](const Parameter& p) { return p.trainable && p.role_reason != "--train"; });
  if (told || guessed == 0) return;
  const auto numbers = std::count_if(plan.candidates.begin(), plan.candidates.end(),
                                     [](const Candidate& c) { return c.role == Role::constant && c.number; });
  const std::string trained =
      numbers == 0
          ? fmt::format("all {} floating-point tensors on a gradient path are trained; --freeze PATTERN keeps those that are none", guessed)
          : fmt::format(
                "{} floating-point tensors on a gradient path are trained, {} that look like numbers of a formula are not; "
                "--freeze PATTERN and --train PATTERN say otherwise",
                guessed, numbers);
  plan.report.push_back(fmt::format("the file does not say which tensors are buffers: {} (inspect lists them)", trained));
}

void report_stored(DType precision, RolePlan& plan) {
  std::map<StoredType, int> by_type;
  for (const Parameter& p : plan.parameters) ++by_type[p.source.type];
  for (const auto& [type, count] : by_type) {
    const std::string stored =
        fmt::format("{} stored as {}", count == 1 ? "1 parameter is" : fmt::format("{} parameters are", count), stored_long_name(type));
    if (type == StoredType::f16 || type == StoredType::bf16)
      plan.report.push_back(fmt::format("{0}: the model is computed and trained in {1}, and an export rounds them to {2}", stored,
                                        type_name(precision), stored_long_name(type)));
    if (!is_floating(type))
      plan.report.push_back(fmt::format(
          "{0} with a scale: the {1} that they stand for are trained, rounded by that scale wherever they are read, and gradients "
          "pass the rounding as if it were not there; an export writes {2} again",
          stored, type_name(precision), stored_long_name(type)));
  }
}

// Parameters of the module that the file holds no more, with the node that one was made with where there is one.
void report_dropped(const ExporterMetadata& m, RolePlan& plan) {
  std::set<std::string> held;
  for (const Parameter& p : plan.parameters) held.insert(p.name);
  for (const Candidate& c : plan.candidates) held.insert({c.tensor->name, c.root});
  for (const Candidate& c : plan.candidates)  // ONNX Runtime's quantiser calls the integers of X so
    if (c.quantization && c.tensor->name.ends_with("_quantized")) held.insert(c.tensor->name.substr(0, c.tensor->name.size() - 10));
  for (const auto& [name, sources] : m.folded_from) held.insert(sources.begin(), sources.end());
  const auto lost = [&](const std::string& argument) {
    const auto target = m.target.find(argument);
    const bool is = target != m.target.end() && source_role(m, target->second) == Role::parameter && held.insert(target->second).second;
    return is ? target->second : "";
  };
  for (const auto& [output, note] : m.nodes)
    for (const std::string& argument : note.fx_parameters)
      if (const std::string name = lost(argument); !name.empty())
        plan.report.push_back(fmt::format(
            "parameter '{}', with which node '{}' was made, is not in the file and is not trained: the exporter left it out as "
            "a bias that is zero, or folded it into another (as a batch normalization); torch.onnx.export(..., optimize=False) keeps it",
            name, note.name.empty() ? output : note.name));
  std::vector<std::string> others;
  for (const auto& [argument, target] : m.target)
    if (const std::string name = lost(argument); !name.empty()) others.push_back(name);
  if (!others.empty())
    plan.report.push_back(
        fmt::format("parameters of the exported module that no node names: '{}'; they are other names of tied ones, unused, or left out "
                    "where they change nothing yet, such as a factor of one (torch.onnx.export(..., optimize=False) keeps those)",
                    fmt::join(others, "', '")));
}

// Exports in evaluation mode leave dropout out, and nothing in the file tells that there was some.
void report_dropout(const OnnxModel& model, RolePlan& plan) {
  const bool any = std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const OnnxNode& n) { return n.op == "Dropout"; });
  if (any || model.producer.rfind("pytorch", 0) != 0) return;
  plan.report.push_back(
      "the file holds no Dropout: if the module had some, its export in evaluation mode left it out, and it is trained without; "
      "torch.onnx.export(..., training=TrainingMode.TRAINING, dynamo=False) keeps it");
}

void fill_rows(const OnnxModel& model, RolePlan& plan) {
  const auto row = [&](const OnnxTensor& tensor) {
    const auto found = plan.by_name.find(tensor.name);
    RoleRow r{tensor.name, "", Role::constant, onnx_type_name(tensor.type), tensor.shape, "no floating-point values"};
    if (found != plan.by_name.end()) {
      const Candidate& c = plan.candidates[found->second];
      r.role = c.role;
      r.root = c.root;
      r.reason = c.reason;
      if (c.parameter >= 0) {
        const Parameter& p = plan.parameters[c.parameter];
        r.role = p.statistics ? Role::buffer : p.trainable ? Role::parameter : Role::frozen;
        r.root = p.name;
        r.reason = p.role_reason == "--freeze" || p.role_reason == "--train" ? p.role_reason : c.reason;
      }
    }
    plan.rows.push_back(std::move(r));
  };
  for (const OnnxGraph* graph : all_graphs(model.graph))
    for (const OnnxTensor& tensor : graph->initializers) row(tensor);
  std::set<std::string> listed;
  for (const RoleRow& r : plan.rows) listed.insert(r.initializer);
  for (const Candidate& c : plan.candidates)
    if (!listed.count(c.tensor->name)) row(*c.tensor);
  for (const Parameter& p : plan.parameters)
    if (!p.split_uses.empty())
      plan.rows.push_back({p.source.initializer, p.name,
                           p.statistics  ? Role::buffer
                           : p.trainable ? Role::parameter
                                         : Role::frozen,
                           std::string(stored_long_name(p.source.type)), p.shape, p.role_reason});
}

}  // namespace zeroplan
