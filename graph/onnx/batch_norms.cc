#include "graph/onnx/batch_norms.h"

#include <fmt/format.h>

#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr int kMean = 3, kVariance = 4;  // inputs

// A pattern may name the node, its output or any of its tensors.
bool matches(Patterns& patterns, const OnnxNode& node) {
  bool any = patterns.matches(node.label());
  for (const std::string& output : node.outputs) any |= !output.empty() && patterns.matches(output);
  for (size_t i = 1; i < node.inputs.size(); ++i) any |= patterns.matches(node.inputs[i]);
  return any;
}

bool uses_batch(const OnnxNode& node, bool inference, Patterns& train, Patterns& eval) {
  const bool wanted = matches(train, node), refused = matches(eval, node);
  const OnnxAttribute* stated = node.find("training_mode");
  return wanted || (!refused && !inference && stated != nullptr && stated->i != 0);
}

}  // namespace

BatchNorms::BatchNorms(const OnnxModel& model, const ImportOptions& options, RolePlan& plan)
    : model_(model), plan_(plan), forward_only_(!options.outputs.empty()) {
  Patterns train("--train-bn", options.train_bn), eval("--eval-bn", options.eval_bn);
  for (const OnnxValueInfo& input : model.graph.inputs) given_.insert(input.name);
  visit(model.graph, options, train, eval);
  for (const Patterns* patterns : {&train, &eval})
    for (const std::string& line : patterns->unused()) plan.problems.push_back(line + " as a tensor of a BatchNormalization");
}

// Depth is bounded by the nesting limit of the file.
void BatchNorms::visit(const OnnxGraph& graph, const ImportOptions& options, Patterns& train, Patterns& eval) {
  scopes_.emplace_back();
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) scopes_.back()[output] = &node;
    for (const OnnxAttribute& attribute : node.attributes)
      if (attribute.graph) visit(*attribute.graph, options, train, eval);
    if (node.op != "BatchNormalization" || !node.domain.empty() || node.outputs.empty() || node.inputs.size() < 5) continue;
    const bool batch = uses_batch(node, options.inference, train, eval);
    plan_.batch_norms[&node] = batch;
    ++(batch ? trained_ : evaluated_);
    if (!batch) continue;
    for (const int input : {kMean, kVariance}) add(node, input);
  }
  scopes_.pop_back();
}

const OnnxNode* BatchNorms::producer(const std::string& value) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(value); found != scope->end()) return found->second;
  return nullptr;
}

// Identity nodes stand for tensors that TorchScript's exporter merged.
void BatchNorms::add(const OnnxNode& norm, int input) {
  Place place{&norm, &norm, input, input};
  place.nested = scopes_.size() > 1;
  const OnnxNode* from = producer(norm.inputs[input]);
  for (; from && from->op == "Identity"; from = producer(from->inputs[0])) {
    place.node = from;
    place.input = 0;
  }
  const std::string& value = place.node->inputs[place.input];
  place.candidate = stored_candidate(value);
  if (place.candidate >= 0) return places_.push_back(place);
  if (forward_only_ || given_.count(value)) return;  // nothing is recorded, or the caller keeps them
  plan_.problems.push_back(fmt::format(
      "node '{0}' (BatchNormalization) normalizes with the statistics of its batch, but its running {1} '{2}' is no tensor that "
      "the file stores as one piece, so that training cannot update it; store it as an initializer, or --eval-bn '{0}'",
      norm.label(), input == kMean ? "mean" : "variance", value));
}

// A tensor of the file that holds numbers in one piece: an initializer, or one of a Constant node, which becomes a candidate by this.
int BatchNorms::stored_candidate(const std::string& value) {
  const auto found = plan_.by_name.find(value);
  if (found != plan_.by_name.end()) return plan_.candidates[found->second].tensor->in_file ? found->second : -1;
  const OnnxNode* from = producer(value);
  const OnnxAttribute* stored = from && from->op == "Constant" && from->domain.empty() ? from->find("value") : nullptr;
  if (!stored || !stored->tensor.in_file || !is_floating_type(stored->tensor.type)) return -1;
  Candidate c;
  c.tensor = &stored->tensor;
  c.root = value;
  const auto index = static_cast<int>(plan_.candidates.size());
  plan_.by_name[value] = index;
  plan_.candidates.push_back(std::move(c));
  return index;
}

int BatchNorms::parameter_at(const Place& place) const {
  const auto own = plan_.split_uses.find({place.node->outputs[0], place.input});
  return !place.nested && own != plan_.split_uses.end() ? own->second : plan_.candidates[place.candidate].parameter;
}

void BatchNorms::make_parameters(const ImportOptions& options) {
  for (const Place& place : places_) {
    Candidate& c = plan_.candidates[place.candidate];
    if (c.parameter >= 0) continue;
    c.role = Role::parameter;
    c.reason = "running statistics of a batch normalization";
    make_parameter(c, options, plan_);
    c.role = Role::buffer;
    if (c.parameter < 0) continue;
    plan_.parameters[c.parameter].statistics = true;
    plan_.parameters[c.parameter].trainable = false;
  }
}

// A tensor that an exporter merged into a trained one.
int BatchNorms::give_own(const Place& place, int merged) {
  Parameter p = plan_.parameters[merged];
  p.name += place.statistic == kMean ? ".running_mean" : ".running_var";
  p.aliases.clear();
  p.split_uses = {{place.node->label(), place.input}};
  plan_.split_uses[{place.node->outputs[0], place.input}] = static_cast<int>(plan_.parameters.size());
  plan_.report.push_back(fmt::format("split: '{}' holds running statistics of node '{}' (the exporter had merged it into '{}')", p.name,
                                     place.node->label(), p.source.initializer));
  plan_.parameters.push_back(std::move(p));
  return static_cast<int>(plan_.parameters.size()) - 1;
}

void BatchNorms::mark_statistics() {
  std::set<int> held;
  for (const Place& place : places_) {
    int index = parameter_at(place);
    if (index < 0) continue;
    if (plan_.parameters[index].trainable && place.nested) {
      plan_.problems.push_back(fmt::format("node '{}' reads the trained '{}' as its running statistics; store these apart",
                                           place.norm->label(), plan_.parameters[index].name));
      continue;
    }
    if (plan_.parameters[index].trainable) index = give_own(place, index);
    held.insert(index);
    Parameter& p = plan_.parameters[index];
    p.statistics = true;
    p.trainable = false;
    p.role_reason = "running statistics of a batch normalization";
  }
  for (int i = 0; i < static_cast<int>(plan_.parameters.size()); ++i) {
    Parameter& p = plan_.parameters[i];
    if (!p.statistics || held.count(i)) continue;  // parted from one: what the exporter merged into it
    p.statistics = false;
    p.trainable = source_role(model_.metadata, p.name) == Role::parameter;
  }
}

void BatchNorms::report(const ImportOptions& options) {
  if (trained_ > 0)
    plan_.report.push_back(
        fmt::format("{} the statistics of {}, and training updates the running ones; --eval-bn PATTERN keeps a node's as they are{}",
                    trained_ == 1 ? "1 BatchNormalization uses" : fmt::format("{} BatchNormalizations use", trained_),
                    options.sync_bn ? "all ranks' samples of a round" : "each micro-batch",
                    options.micro_batches > 1 && !options.sync_bn ? "; --sync-bn takes them over all ranks" : ""));
  if (evaluated_ > 0)
    plan_.report.push_back(
        fmt::format("{} running statistics, which stay as they are; --train-bn PATTERN trains with those of the batch",
                    evaluated_ == 1 ? "1 BatchNormalization uses its" : fmt::format("{} BatchNormalizations use their", evaluated_)));
  if (options.sync_bn && trained_ == 0)
    plan_.problems.push_back(
        "--sync-bn: no BatchNormalization of the model uses the statistics of its batch; --train-bn PATTERN lets some do so");
}

}  // namespace zeroplan
