#include "graph/onnx/batch_norms.h"

#include <fmt/format.h>

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

bool uses_batch(const OnnxNode& node, Patterns& train, Patterns& eval) {
  const bool wanted = matches(train, node), refused = matches(eval, node);
  const OnnxAttribute* stated = node.find("training_mode");
  return wanted || (!refused && stated != nullptr && stated->i != 0);
}

}  // namespace

BatchNorms::BatchNorms(const OnnxModel& model, const ImportOptions& options, RolePlan& plan) : model_(model), plan_(plan) {
  Patterns train("--train-bn", options.train_bn), eval("--eval-bn", options.eval_bn);
  for (const OnnxNode& node : model.graph.nodes) {
    for (const std::string& output : node.outputs) producers_[output] = &node;
    if (node.op != "BatchNormalization" || !node.domain.empty() || node.outputs.empty() || node.inputs.size() < 5) continue;
    const bool batch = uses_batch(node, train, eval);
    plan.batch_norms[node.outputs[0]] = batch;
    if (batch)
      trained_.push_back(&node);
    else
      ++evaluated_;
  }
  for (const Patterns* patterns : {&train, &eval})
    for (const std::string& line : patterns->unused()) plan.problems.push_back(line + " as a tensor of a BatchNormalization");
}

// Identity nodes stand for tensors that TorchScript's exporter merged.
BatchNorms::Place BatchNorms::place_of(const OnnxNode& node, int input) const {
  Place place{&node, input};
  for (auto producer = producers_.find(node.inputs[input]); producer != producers_.end() && producer->second->op == "Identity";
       producer = producers_.find(place.node->inputs[0]))
    place = {producer->second, 0};
  const auto found = plan_.by_name.find(place.node->inputs[place.input]);
  if (found != plan_.by_name.end()) place.candidate = found->second;
  return place;
}

int BatchNorms::parameter_at(const Place& place) const {
  const auto own = plan_.split_uses.find({place.node->outputs[0], place.input});
  return own != plan_.split_uses.end() ? own->second : plan_.candidates[place.candidate].parameter;
}

void BatchNorms::make_parameters(const ImportOptions& options) {
  for (const OnnxNode* node : trained_)
    for (const int input : {kMean, kVariance}) {
      const Place place = place_of(*node, input);
      if (place.candidate < 0 || plan_.candidates[place.candidate].parameter >= 0) continue;
      Candidate& c = plan_.candidates[place.candidate];
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
  p.name += place.input == kMean ? ".running_mean" : ".running_var";
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
  for (const OnnxNode* node : trained_)
    for (const int input : {kMean, kVariance}) {
      const Place place = place_of(*node, input);
      int index = place.candidate < 0 ? -1 : parameter_at(place);
      if (index < 0) continue;
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
  if (!trained_.empty())
    plan_.report.push_back(
        fmt::format("{} the statistics of {}, and training updates the running ones; --eval-bn PATTERN keeps a node's as they are{}",
                    trained_.size() == 1 ? "1 BatchNormalization uses" : fmt::format("{} BatchNormalizations use", trained_.size()),
                    options.sync_bn ? "all ranks' samples of a round" : "each micro-batch",
                    options.micro_batches > 1 && !options.sync_bn ? "; --sync-bn takes them over all ranks" : ""));
  if (evaluated_ > 0)
    plan_.report.push_back(
        fmt::format("{} running statistics, which stay as they are; --train-bn PATTERN trains with those of the batch",
                    evaluated_ == 1 ? "1 BatchNormalization uses its" : fmt::format("{} BatchNormalizations use their", evaluated_)));
  if (options.sync_bn && trained_.empty())
    plan_.problems.push_back(
        "--sync-bn: no BatchNormalization of the model uses the statistics of its batch; --train-bn PATTERN lets some do so");
}

}  // namespace zeroplan
