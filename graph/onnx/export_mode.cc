#include "graph/onnx/export_mode.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/counted.h"
#include "graph/onnx/proto_checks.h"
#include "graph/onnx/proto_reads.h"

namespace zeroplan {
namespace {

// Attributes and inputs that say it, by opset: is_test up to 6; the number of outputs up to 13; then training_mode.
constexpr int kTestAttribute = 6, kTrainingOutputs = 13;
constexpr int kMean = 3, kVariance = 4;  // inputs of BatchNormalization

template <typename Imports>
int default_opset(const Imports& imports) {
  for (const auto& import : imports)
    if (is_default_domain(import.domain())) return static_cast<int>(import.version());
  return 1;
}

onnx::AttributeProto* find_attribute(onnx::NodeProto& node, const std::string& name) {
  for (auto& attribute : *node.mutable_attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

// True: it changed.
bool set_attribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto* attribute = find_attribute(node, name);
  if (attribute && attribute->i() == value) return false;
  if (!attribute) attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
  return true;
}

std::optional<bool> truth(const onnx::TensorProto& tensor) {
  if (tensor.data_type() != onnx::TensorProto::BOOL || tensor.data_location() == onnx::TensorProto::EXTERNAL) return std::nullopt;
  const std::string bytes = tensor_contents(tensor);
  return bytes.size() == 1 ? std::optional(bytes[0] != 0) : std::nullopt;
}

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// All recursion here is bounded by kMaxMessageDepth.
class InferenceMode {
 public:
  explicit InferenceMode(int opset) : opset_(opset) {}

  void run(onnx::GraphProto& graph) {
    constants_.emplace_back();
    for (const auto& tensor : graph.initializer())
      if (const std::optional<bool> value = truth(tensor)) constants_.back()[tensor.name()] = *value;
    std::set<std::string> reads;
    add_reads(graph, reads);
    run(*graph.mutable_node(), reads);
    auto& infos = *graph.mutable_value_info();
    infos.erase(std::remove_if(infos.begin(), infos.end(), [&](const auto& info) { return gone_.count(info.name()) > 0; }), infos.end());
    constants_.pop_back();
  }

  void run(onnx::FunctionProto& function) {
    constants_.emplace_back();
    std::set<std::string> reads(function.output().begin(), function.output().end());
    for (const auto& node : function.node()) add_reads(node, reads);
    run(*function.mutable_node(), reads);
    constants_.pop_back();
  }

  int64_t norms = 0, dropouts = 0;
  std::vector<std::string> lines;

 private:
  void run(NodeList& nodes, const std::set<std::string>& reads) {
    for (int i = 0; i < nodes.size(); ++i) {
      onnx::NodeProto& node = *nodes.Mutable(i);
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.has_g()) run(*attribute.mutable_g());
      if (!is_default_domain(node.domain())) continue;
      if (stores_tensor(node))
        if (const std::optional<bool> value = truth(node.attribute(0).t())) constants_.back()[node.output(0)] = *value;
      if (node.op_type() == "Dropout") dropout(node);
      if (node.op_type() == "BatchNormalization") i += batch_norm(nodes, i, reads);
    }
  }

  void dropout(onnx::NodeProto& node) {
    if (opset_ <= kTestAttribute) {
      dropouts += set_attribute(node, "is_test", 1);
    } else if (node.input_size() >= 3 && !node.input(2).empty()) {
      const std::optional<bool> training = find(node.input(2));
      if (!training)
        lines.push_back(fmt::format("node '{}' (Dropout) is in training mode where its input '{}' says so, in the export too",
                                    node.name().empty() ? node.output(0) : node.name(), node.input(2)));
      if (training != true) return;
      node.mutable_input()->RemoveLast();
      ++dropouts;
    }
  }

  // Returns the number of nodes that were added behind it.
  int batch_norm(NodeList& nodes, int at, const std::set<std::string>& reads) {
    onnx::NodeProto& node = *nodes.Mutable(at);
    bool changed = node.output_size() > 1;
    if (opset_ <= kTestAttribute) changed |= set_attribute(node, "is_test", 1);
    if (opset_ > kTrainingOutputs && find_attribute(node, "training_mode")) changed |= set_attribute(node, "training_mode", 0);
    if (!changed) return 0;
    ++norms;
    int added = 0;
    for (int k = 1; k < node.output_size(); ++k) {
      const std::string output = node.output(k);
      if (output.empty()) continue;
      if (!reads.count(output) || node.input_size() <= kVariance) {
        gone_.insert(output);
        continue;
      }
      onnx::NodeProto& stored = *nodes.Add();
      stored.set_op_type("Identity");
      stored.set_name(output + "_stored");
      stored.add_input(node.input(k % 2 == 1 ? kMean : kVariance));
      stored.add_output(output);
      for (int place = nodes.size() - 1; place > at + 1 + added; --place) nodes.SwapElements(place, place - 1);
      ++added;
    }
    node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
    return added;
  }

  std::optional<bool> find(const std::string& name) const {
    for (auto scope = constants_.rbegin(); scope != constants_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return std::nullopt;
  }

  const int opset_;
  std::vector<std::map<std::string, bool>> constants_;  // by graph
  std::set<std::string> gone_;                          // outputs that are no more
};

}  // namespace

std::vector<std::string> set_inference_mode(onnx::ModelProto& model) {
  std::vector<std::string> lines;
  int64_t norms = 0, dropouts = 0;
  const auto add = [&](InferenceMode& mode) {
    norms += mode.norms;
    dropouts += mode.dropouts;
    lines.insert(lines.end(), mode.lines.begin(), mode.lines.end());
  };
  InferenceMode graph(default_opset(model.opset_import()));
  graph.run(*model.mutable_graph());
  add(graph);
  for (auto& function : *model.mutable_functions()) {
    InferenceMode body(default_opset(function.opset_import()));
    body.run(function);
    add(body);
  }
  if (norms + dropouts > 0)
    lines.push_back(fmt::format("{} and {} of the file are in training mode there and in inference mode in the export",
                                counted(norms, "BatchNormalization"), counted(dropouts, "Dropout")));
  return lines;
}

}  // namespace zeroplan
