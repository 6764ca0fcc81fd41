#include "graph/onnx/stated_update.h"

#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/proto_attributes.h"
#include "graph/onnx/proto_checks.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr double kNoEpsilon = 1e-30;  // for an epsilon of 0: nothing beside any root but that of 0

template <typename T>
double first(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(value);
}

std::optional<double> scalar(const onnx::TensorProto& tensor) {
  const std::string bytes = elements(tensor_shape(tensor)) == 1 ? tensor_contents(tensor) : "";
  if (tensor.data_type() == kOnnxFloat && bytes.size() == 4) return meant_decimal(first<float>(bytes));
  if (tensor.data_type() == kOnnxDouble && bytes.size() == 8) return first<double>(bytes);
  if (tensor.data_type() == kOnnxInt64 && bytes.size() == 8) return first<int64_t>(bytes);
  return std::nullopt;
}

class UpdateReader {
 public:
  UpdateReader(const onnx::ModelProto& model, const onnx::TrainingInfoProto& training) : training_(training) {
    for (const auto* graph : {&model.graph(), &training.algorithm()}) {
      for (const auto& tensor : graph->initializer()) constants_[tensor.name()] = scalar(tensor);
      for (const auto& node : graph->node()) add_node(node);
    }
  }

  StatedOptimizer run(const std::set<std::string>& trained) {
    std::set<std::string> descriptions;
    for (const auto& binding : training_.update_binding()) {
      if (!trained.count(binding.key())) continue;
      StatedOptimizer out = read(binding.key(), binding.value());
      descriptions.insert(describe(out) + out.problem);
      result_ = std::move(out);
    }
    if (descriptions.empty()) result_.problem = "updates none of the tensors that it differentiates by";
    if (descriptions.size() > 1) result_.problem = "updates its tensors by different rules";
    if (result_.problem.empty()) return result_;
    result_.kind.clear();
    result_.problem = fmt::format("the model's training algorithm {}, which has no equivalent here; choose an optimizer with --optimizer",
                                  result_.problem);
    return result_;
  }

 private:
  void add_node(const onnx::NodeProto& node) {
    for (const std::string& output : node.output()) producers_[output] = &node;
    const onnx::AttributeProto* value = constant_attribute(node);
    if (!value) return;
    if (value->has_t()) constants_[node.output(0)] = scalar(value->t());
    if (value->name() == "value_float") constants_[node.output(0)] = meant_decimal(static_cast<double>(value->f()));
    if (value->name() == "value_int") constants_[node.output(0)] = static_cast<double>(value->i());
  }

  const onnx::NodeProto* producer(std::string name) const {
    for (size_t hops = 0; hops <= producers_.size(); ++hops) {
      const auto found = producers_.find(name);
      if (found == producers_.end()) return nullptr;
      if (found->second->op_type() != "Identity" || found->second->input_size() != 1) return found->second;
      name = found->second->input(0);
    }
    return nullptr;
  }

  std::optional<double> constant(const std::string& name) const {
    const auto found = constants_.find(name);
    return found == constants_.end() ? std::nullopt : found->second;
  }

  bool is_gradient(const std::string& name) const {
    const onnx::NodeProto* node = producer(name);
    return node && node->op_type() == "Gradient";
  }

  StatedOptimizer read(const std::string& tensor, const std::string& update) const {
    const onnx::NodeProto* node = producer(update);
    StatedOptimizer out;
    if (node && node->domain() == "ai.onnx.preview.training" && node->input_size() > 2)
      read_operator(*node, out);
    else if (!node || !read_descent(*node, tensor, out))
      out.problem = fmt::format("updates '{}' by a rule of its own", tensor);
    return out;
  }

  void read_operator(const onnx::NodeProto& node, StatedOptimizer& out) const {
    out.lr = constant(node.input(0));
    out.weight_decay = float_attribute(node, "norm_coefficient", 0);
    if (node.op_type() == "Adam") {
      out.kind = "adam";
      out.beta1 = float_attribute(node, "alpha", 0.9);
      out.beta2 = float_attribute(node, "beta", 0.999);
      out.eps = float_attribute(node, "epsilon", 1e-6);
      if (*out.eps == 0) out.eps = kNoEpsilon;
      out.hugging_face = true;
      if (float_attribute(node, "norm_coefficient_post", 0) != 0) out.problem = "uses Adam with norm_coefficient_post";
    } else if (node.op_type() == "Momentum") {
      out.kind = "sgd";
      out.momentum = float_attribute(node, "alpha", 0);
      if (text_attribute(node, "mode") == "nesterov") out.problem = "uses Momentum in mode nesterov";
      if (float_attribute(node, "beta", 1) != 1) out.problem = "uses Momentum with a beta other than 1";
    } else {
      out.problem = fmt::format("uses {}", node.op_type());
    }
  }

  // w - lr · g, or w - g.
  bool read_descent(const onnx::NodeProto& node, const std::string& tensor, StatedOptimizer& out) const {
    if (node.op_type() != "Sub" || node.input_size() != 2 || node.input(0) != tensor) return false;
    out.kind = "sgd";
    out.weight_decay = 0;
    out.lr = 1;
    if (is_gradient(node.input(1))) return true;
    const onnx::NodeProto* step = producer(node.input(1));
    if (!step || step->op_type() != "Mul" || step->input_size() != 2) return false;
    const int gradient = is_gradient(step->input(0)) ? 0 : 1;
    out.lr = constant(step->input(1 - gradient));
    return is_gradient(step->input(gradient));
  }

  const onnx::TrainingInfoProto& training_;
  std::map<std::string, const onnx::NodeProto*> producers_;
  std::map<std::string, std::optional<double>> constants_;
  StatedOptimizer result_;
};

}  // namespace

StatedOptimizer read_update(const onnx::ModelProto& model, const onnx::TrainingInfoProto& training, const std::set<std::string>& trained) {
  return UpdateReader(model, training).run(trained);
}

}  // namespace zeroplan
