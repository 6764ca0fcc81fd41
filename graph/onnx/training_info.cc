#include "graph/onnx/training_info.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "graph/onnx/forward_part.h"
#include "graph/onnx/stated_update.h"

namespace zeroplan {
namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

struct Differentiated {
  std::string loss;
  std::set<std::string> tensors;
};

// By all Gradient nodes together; empty where there is none.
Differentiated differentiated(const onnx::GraphProto& algorithm) {
  Differentiated out;
  for (const auto& node : algorithm.node()) {
    if (node.op_type() != "Gradient" || node.domain() != kDomain) continue;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "xs") out.tensors.insert(attribute.strings().begin(), attribute.strings().end());
      if (attribute.name() != "y") continue;
      if (!out.loss.empty() && out.loss != attribute.s())
        throw Error(fmt::format("the training algorithm differentiates '{}' and '{}'; one loss is supported", out.loss, attribute.s()));
      out.loss = attribute.s();
    }
  }
  return out;
}

void check_trained(const onnx::ModelProto& model, const onnx::GraphProto& algorithm, const Differentiated& step) {
  std::set<std::string> own, other;
  for (const auto& tensor : model.graph().initializer()) own.insert(tensor.name());
  for (const auto& tensor : algorithm.initializer()) other.insert(tensor.name());
  for (const std::string& name : step.tensors)
    if (!own.count(name))
      throw Error(fmt::format("the training algorithm differentiates by '{}', which is {}; store it as an initializer of the main graph",
                              name, other.count(name) ? "an initializer of the algorithm" : "no initializer"));
}

// The step graph of the specification: the algorithm's parts behind those of the main graph.
void append(onnx::GraphProto& graph, const onnx::GraphProto& algorithm) {
  graph.mutable_input()->MergeFrom(algorithm.input());
  graph.mutable_initializer()->MergeFrom(algorithm.initializer());
  graph.mutable_value_info()->MergeFrom(algorithm.value_info());
  graph.mutable_node()->MergeFrom(algorithm.node());
}

void add_output(onnx::GraphProto& graph, const onnx::GraphProto& algorithm, const std::string& loss) {
  for (const auto& info : graph.output())
    if (info.name() == loss) return;
  for (const auto* list : {&algorithm.output(), &graph.value_info()})
    for (const auto& info : *list)
      if (info.name() == loss && info.type().tensor_type().has_shape()) {
        *graph.add_output() = info;
        return;
      }
  auto& info = *graph.add_output();  // not described: a number, as losses are
  info.set_name(loss);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  info.mutable_type()->mutable_tensor_type()->mutable_shape();
}

void report(const onnx::TrainingInfoProto& training, const Differentiated& step, TrainingFacts& facts) {
  facts.report.push_back(
      fmt::format("training information: {} trained with the loss '{}'; the algorithm's own step is not run, zeroplan's is",
                  counted(static_cast<int64_t>(step.tensors.size()), "tensor"), step.loss));
  if (!facts.optimizer->kind.empty()) facts.report.push_back("its update is done as " + describe(*facts.optimizer));
  for (const auto& binding : training.initialization_binding())
    if (step.tensors.count(binding.key()))
      facts.report.push_back(
          fmt::format("'{}' starts from the value that the file stores: its initialization graph is not run", binding.key()));
}

}  // namespace

void add_training_info(onnx::ModelProto& model, WireModel* wire, TrainingFacts& facts) {
  if (model.training_info_size() == 0) return;
  if (model.training_info_size() > 1)
    throw Error(fmt::format("the model states {} training algorithms; keep the one that is meant", model.training_info_size()));
  const onnx::TrainingInfoProto training = model.training_info(0);
  const Differentiated step = differentiated(training.algorithm());
  if (step.loss.empty()) {
    facts.report.push_back("the model's training algorithm has no Gradient node and is left out");
    return;
  }
  check_trained(model, training.algorithm(), step);
  for (const std::string& name : step.tensors) facts.roles[name] = true;
  facts.stated_by = "the training information";
  facts.loss = step.loss;
  facts.optimizer = read_update(model, training, step.tensors);
  report(training, step, facts);
  onnx::GraphProto& graph = *model.mutable_graph();
  append(graph, training.algorithm());
  add_output(graph, training.algorithm(), step.loss);
  drop_unread(graph, wire);
}

}  // namespace zeroplan
