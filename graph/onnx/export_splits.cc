#include "graph/onnx/export_splits.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/metadata.h"

namespace zeroplan {
namespace {

class SplitWriter {
 public:
  explicit SplitWriter(onnx::ModelProto& model)
      : graph_(*model.mutable_graph()), ir_version_(model.ir_version()), metadata_(read_metadata(model)) {
    for (const auto& [argument, target] : metadata_.target) arguments_.emplace(target, argument);
    for (const auto& output : graph_.output()) outputs_.insert(output.name());
    add_names(graph_);
  }

  std::string write(const Parameter& p) {
    std::string name = free_name(p.name);
    std::vector<std::pair<int, int>> uses;
    for (const auto& [label, input] : p.split_uses) uses.emplace_back(find_use(label, input, p.source.initializer), input);
    for (const auto& [node, input] : uses)
      if (replaceable(graph_.node(node))) name = graph_.node(node).output(0);
    for (const auto& [node, input] : uses) rewire(node, input, name);
    add_initializer(p, name);
    return name;
  }

  void remove_replaced() {
    for (auto node = replaced_.rbegin(); node != replaced_.rend(); ++node) graph_.mutable_node()->DeleteSubrange(*node, 1);
  }

 private:
  // Depth is bounded by kMaxMessageDepth.
  void add_names(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) names_.insert(tensor.name());
    for (const auto& input : graph.input()) names_.insert(input.name());
    for (const auto& node : graph.node()) {
      names_.insert(node.output().begin(), node.output().end());
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) add_names(attribute.g());
    }
  }

  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    for (int suffix = 1; names_.count(name); ++suffix) name = fmt::format("{}.{}", wanted, suffix);
    return name;
  }

  bool replaceable(const onnx::NodeProto& node) const {
    return node.op_type() == "Identity" && node.output_size() == 1 && !outputs_.count(node.output(0));
  }

  int find_use(const std::string& label, int input, const std::string& initializer) {
    for (const bool by_name : {true, false})
      for (int i = 0; i < graph_.node_size(); ++i) {
        const onnx::NodeProto& node = graph_.node(i);
        const bool labelled = by_name ? node.name() == label : node.name().empty() && node.output_size() > 0 && node.output(0) == label;
        if (labelled && input < node.input_size() && node.input(input) == initializer && !taken_.count({i, input})) {
          taken_.insert({i, input});
          return i;
        }
      }
    throw Error(fmt::format("the model has no node '{}' that reads '{}' any more; was the file changed?", label, initializer));
  }

  void rewire(int node, int input, const std::string& name) {
    onnx::NodeProto& reader = *graph_.mutable_node(node);
    if (replaceable(reader) && reader.output(0) == name)
      replaced_.insert(node);
    else
      reader.set_input(input, name);
  }

  void add_initializer(const Parameter& p, const std::string& name) {
    const auto source = std::find_if(graph_.initializer().begin(), graph_.initializer().end(),
                                     [&](const auto& tensor) { return tensor.name() == p.source.initializer; });
    if (source == graph_.initializer().end())
      throw Error(fmt::format("the model has no initializer '{}' any more; was the file changed?", p.source.initializer));
    onnx::TensorProto tensor;
    tensor.set_data_type(source->data_type());
    if (source->data_location() == onnx::TensorProto::EXTERNAL) tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    tensor.mutable_dims()->CopyFrom(source->dims());
    tensor.set_name(name);
    *graph_.add_initializer() = std::move(tensor);
    names_.insert(name);
    describe(p, name);
  }

  // By the signature where there is one: what it does not name is a constant of the model.
  void restate(onnx::ValueInfoProto& info, const std::string& name) const {
    const auto stated = arguments_.find(name);
    if (stated == arguments_.end() && !arguments_.empty()) return info.clear_metadata_props();
    std::string argument = "p_" + name;
    std::replace(argument.begin(), argument.end(), '.', '_');
    for (auto& entry : *info.mutable_metadata_props()) {
      if (entry.key() == "pkg.torch.onnx.original_node_name") entry.set_value(stated == arguments_.end() ? argument : stated->second);
      if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind" && stated != arguments_.end())
        entry.set_value(metadata_.target_kind.at(name));
      if (entry.key() == "pkg.onnxscript.optimizer.folded_from") entry.set_value(fmt::format("['{}']", name));
    }
  }

  // The notes of the merged tensor, under the own name.
  void describe(const Parameter& p, const std::string& name) {
    for (const auto& info : graph_.value_info()) {
      if (info.name() != p.source.initializer) continue;
      onnx::ValueInfoProto own = info;
      own.set_name(name);
      restate(own, p.name);
      *graph_.add_value_info() = std::move(own);
      break;
    }
    if (ir_version_ >= 4) return;
    for (const auto& info : graph_.input()) {
      if (info.name() != p.source.initializer) continue;
      onnx::ValueInfoProto own = info;
      own.set_name(name);
      *graph_.add_input() = std::move(own);
      break;
    }
  }

  onnx::GraphProto& graph_;
  const int64_t ir_version_;
  const ExporterMetadata metadata_;
  std::map<std::string, std::string> arguments_;  // torch name -> p_…
  std::set<std::string> names_, outputs_;
  std::set<std::pair<int, int>> taken_;
  std::set<int> replaced_;
};

}  // namespace

std::vector<std::string> write_splits(onnx::ModelProto& model, const std::vector<Parameter>& parameters, const std::vector<bool>& joined) {
  SplitWriter writer(model);
  std::vector<std::string> names(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].split_uses.empty() && !joined[i]) names[i] = writer.write(parameters[i]);
  writer.remove_replaced();
  return names;
}

}  // namespace zeroplan
