#include "graph/onnx/loss_model.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/nearest.h"
#include "graph/onnx/bind_dims.h"
#include "graph/onnx/read_model.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

constexpr int kAttributeTensor = 4;  // AttributeProto.AttributeType

const OnnxValueInfo* find_value(const std::vector<OnnxValueInfo>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const OnnxValueInfo& value) { return value.name == name; });
  return found == list.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<OnnxValueInfo>& list) {
  std::vector<std::string> names;
  for (const OnnxValueInfo& value : list) names.push_back(value.name);
  return names;
}

std::string listed(const std::vector<OnnxValueInfo>& list) {
  return list.empty() ? "none" : fmt::format("{}", fmt::join(names_of(list), ", "));
}

class Joiner {
 public:
  Joiner(const OnnxModel& model, const std::string& path, const std::map<std::string, std::string>& map)
      : joined_(model), files_(path), loss_(read_model(files_)), map_(map) {}

  OnnxModel run() {
    check_map();
    if (loss_.graph.outputs.size() != 1)
      throw Error(fmt::format("the loss model '{}' has {} outputs; it must have one, the loss", loss_.path, loss_.graph.outputs.size()));
    for (const OnnxValueInfo& input : loss_.graph.inputs) connect(input);
    if (!connected_)
      throw Error(fmt::format(
          "no input of the loss model '{}' is an output of the model: it has {}, the model {}; {}", loss_.path, listed(loss_.graph.inputs),
          listed(joined_.graph.outputs),
          loss_.graph.inputs.empty() ? "export it with the model's output as an input" : "name the pairs with --loss-map INPUT=OUTPUT"));
    add_data();
    for (const OnnxTensor& tensor : loss_.graph.initializers) joined_.graph.nodes.push_back(constant(tensor));
    for (OnnxNode& node : loss_.graph.nodes) {
      rename(node);
      joined_.graph.nodes.push_back(std::move(node));
    }
    OnnxValueInfo output = loss_.graph.outputs[0];
    output.name = renamed(output.name);
    joined_.graph.outputs.push_back(std::move(output));
    return std::move(joined_);
  }

 private:
  void check_map() const {
    for (const auto& [input, output] : map_) {
      const auto refuse = [&, from = input, to = output](const char* what, const std::string& name, const std::vector<std::string>& known) {
        const std::string close = nearest(name, known);
        throw Error(fmt::format("--loss-map {}={}: '{}' is no {}; {}there is {}", from, to, name, what,
                                close.empty() ? "" : fmt::format("did you mean '{}'? ", close),
                                known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
      };
      if (!find_value(loss_.graph.inputs, input)) refuse("input of the loss model", input, names_of(loss_.graph.inputs));
      if (!find_value(joined_.graph.outputs, output)) refuse("output of the model", output, names_of(joined_.graph.outputs));
    }
  }

  void connect(const OnnxValueInfo& input) {
    const auto stated = map_.find(input.name);
    const std::string name = stated == map_.end() ? input.name : stated->second;
    const OnnxValueInfo* output = find_value(joined_.graph.outputs, name);
    const OnnxValueInfo* known = output ? output : find_value(joined_.graph.inputs, name);
    connected_ = connected_ || output;
    names_[input.name] = name;
    if (known)
      learn_dims(input, *known);
    else
      data_.push_back(input);
  }

  // A dim of the loss model is that of the model at the same place.
  void learn_dims(const OnnxValueInfo& input, const OnnxValueInfo& known) {
    if (input.dims.size() != known.dims.size()) return;
    const std::string samples = peek_dims(joined_.graph, {}, {}).sample_symbol;
    for (size_t i = 0; i < input.dims.size(); ++i) {
      if (input.dims[i].symbol.empty()) continue;
      OnnxDim dim = known.dims[i];
      if (i == 0 && !dim.symbol.empty() && !is_bound(dim.symbol)) dim.symbol = samples;  // exporters name the batch of an output anew
      dims_.emplace(input.dims[i].symbol, dim);
    }
  }

  bool is_bound(const std::string& symbol) const {
    for (const OnnxValueInfo& input : joined_.graph.inputs)
      for (const OnnxDim& dim : input.dims)
        if (dim.symbol == symbol) return true;
    return false;
  }

  void add_data() {
    for (OnnxValueInfo& input : data_) {
      for (OnnxDim& dim : input.dims)
        if (const auto known = dims_.find(dim.symbol); !dim.symbol.empty() && known != dims_.end()) dim = known->second;
      joined_.graph.inputs.push_back(std::move(input));
    }
  }

  // A Constant node: no parameter of the model.
  OnnxNode constant(const OnnxTensor& tensor) {
    OnnxAttribute value;
    value.name = "value";
    value.type = kAttributeTensor;
    value.tensor = loaded(tensor);
    OnnxNode node;
    node.op = "Constant";
    node.outputs = {renamed(tensor.name)};
    node.attributes = {std::move(value)};
    return node;
  }

  OnnxTensor loaded(OnnxTensor tensor) {
    if (tensor.in_file) {
      tensor.bytes.resize(static_cast<size_t>(tensor.source.bytes));
      files_.read(tensor.source.file, tensor.source.offset, tensor.source.bytes, tensor.bytes.data());
      tensor.in_file = false;
    }
    return tensor;
  }

  std::string renamed(const std::string& name) {
    const auto known = names_.find(name);
    if (name.empty()) return name;
    return known != names_.end() ? known->second : kLossModelPrefix + name;
  }

  // Depth is bounded by the nesting limit of the file.
  void rename(OnnxNode& node) {
    node.name = kLossModelPrefix + node.label();
    for (auto* list : {&node.inputs, &node.outputs})
      for (std::string& name : *list) name = renamed(name);
    for (OnnxAttribute& attribute : node.attributes) {
      attribute.tensor = loaded(std::move(attribute.tensor));
      if (!attribute.graph) continue;
      OnnxGraph graph = *attribute.graph;
      for (OnnxNode& inner : graph.nodes) rename(inner);
      std::vector<OnnxNode> nodes;
      for (const OnnxTensor& tensor : graph.initializers) nodes.push_back(constant(tensor));
      graph.initializers.clear();
      graph.nodes.insert(graph.nodes.begin(), nodes.begin(), nodes.end());
      for (auto* list : {&graph.inputs, &graph.outputs})
        for (OnnxValueInfo& value : *list) value.name = renamed(value.name);
      attribute.graph = std::make_shared<const OnnxGraph>(std::move(graph));
    }
  }

  OnnxModel joined_;
  WeightFiles files_;
  OnnxModel loss_;
  const std::map<std::string, std::string>& map_;
  std::map<std::string, std::string> names_;  // inputs of the loss model -> what they are
  std::map<std::string, OnnxDim> dims_;
  std::vector<OnnxValueInfo> data_;
  bool connected_ = false;
};

}  // namespace

OnnxModel join_loss_model(const OnnxModel& model, const std::string& path, const std::map<std::string, std::string>& map) {
  return Joiner(model, path, map).run();
}

std::string loss_model_output(const OnnxModel& joined) { return joined.graph.outputs.back().name; }

}  // namespace zeroplan
