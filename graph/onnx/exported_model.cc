#include "graph/onnx/exported_model.h"

#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "graph/onnx/forward_part.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/locate.h"
#include "graph/onnx/nested_tensors.h"
#include "graph/onnx/ort_artifacts.h"
#include "graph/onnx/parse_model.h"
#include "graph/onnx/proto_checks.h"

namespace zeroplan {
namespace {

// Nesting is bounded by kMaxMessageDepth.
onnx::TensorProto& tensor_at(onnx::GraphProto& outer, const TensorPath& path) {
  onnx::GraphProto* graph = &outer;
  for (size_t i = 0; i + 1 < path.size(); i += 2) {
    onnx::AttributeProto& attribute = *graph->mutable_node(path[i])->mutable_attribute(path[i + 1]);
    if (i + 2 == path.size()) return *attribute.mutable_t();
    graph = attribute.mutable_g();
  }
  return *graph->mutable_initializer(path.back());
}

void add_stripped(ExportedModel& model, const WireModel& wire) {
  onnx::GraphProto& graph = *model.proto.mutable_graph();
  const auto add = [&](const TensorPath& path, const TensorPayload& payload) {
    if (payload.stripped) model.contents.push_back({&tensor_at(graph, path), payload.length, payload.field, "", payload.offset});
  };
  for (const auto& [index, payload] : wire.initializers) add({index}, payload);
  for (const auto& [place, payload] : wire.attributes) add({place.first, place.second}, payload);
  for (const auto& [path, payload] : wire.nested) add(path, payload);
}

// Those of `inside` are taken into the model, so that it needs no checkpoint.
void add_external(ExportedModel& model, WeightFiles& files, const std::set<std::string>& inside) {
  for (auto& tensor : *model.proto.mutable_graph()->mutable_initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    const WeightSource source = locate_external(files, tensor).source;
    ExportContents contents{&tensor, source.bytes, kRawData, source.file, source.offset};
    if (inside.count(tensor.name())) {
      tensor.clear_external_data();
      tensor.clear_data_location();
    } else {
      contents.location = source.file;
    }
    model.contents.push_back(std::move(contents));
  }
}

std::map<std::string, onnx::TensorProto*> find_tensors(onnx::GraphProto& graph) {
  std::map<std::string, onnx::TensorProto*> tensors;
  for (auto& tensor : *graph.mutable_initializer()) tensors.emplace(tensor.name(), &tensor);
  for (auto& node : *graph.mutable_node()) {
    if (stores_tensor(node)) tensors.emplace(node.output(0), node.mutable_attribute(0)->mutable_t());
  }
  for (const NestedTensor& nested : nested_tensors(graph)) tensors.emplace(nested.name, nested.tensor);
  return tensors;
}

int field_of(const onnx::TensorProto& tensor) {
  return tensor.float_data_size() > 0 ? kFloatData : tensor.double_data_size() > 0 ? kDoubleData : kRawData;
}

void add_paths(const onnx::GraphProto& graph, const TensorPath& outside, std::map<const onnx::TensorProto*, TensorPath>& paths) {
  const auto inside = [&](std::initializer_list<int> places) {
    TensorPath path = outside;
    path.insert(path.end(), places);
    return path;
  };
  for (int i = 0; i < graph.initializer_size(); ++i) paths[&graph.initializer(i)] = inside({i});
  for (int n = 0; n < graph.node_size(); ++n)
    for (int a = 0; a < graph.node(n).attribute_size(); ++a) {
      const onnx::AttributeProto& attribute = graph.node(n).attribute(a);
      if (attribute.has_t()) paths[&attribute.t()] = inside({n, a});
      if (attribute.has_g()) add_paths(attribute.g(), inside({n, a}), paths);
    }
}

}  // namespace

ExportedModel read_exported(WeightFiles& files) {
  const MappedFile file(files.model_path());
  WireModel wire = walk_model(file.bytes());
  ExportedModel model;
  model.proto = parse_model(wire);
  if (!model.proto.has_graph()) throw Error(fmt::format("model '{}' cannot be read again for the export", files.model_path()));
  TrainingFacts facts;
  std::set<std::string> inside;
  if (add_artifacts(model.proto, files, facts)) {
    drop_unread(*model.proto.mutable_graph(), &wire);
    keep_forward(model.proto, &wire, facts);
    for (const auto& [name, trained] : facts.roles) inside.insert(name);
  }
  model.tensors = find_tensors(*model.proto.mutable_graph());
  add_stripped(model, wire);
  add_external(model, files, inside);
  return model;
}

void bind_parameters(ExportedModel& model, const std::string& path, const std::vector<Parameter>& parameters,
                     const std::vector<std::string>& splits) {
  for (auto& tensor : *model.proto.mutable_graph()->mutable_initializer()) model.tensors.emplace(tensor.name(), &tensor);  // of splits
  std::map<const onnx::TensorProto*, size_t> known;
  for (size_t i = 0; i < model.contents.size(); ++i) known[model.contents[i].tensor] = i;
  const auto bind = [&](int parameter, const std::string& name, bool transposed) {
    const auto tensor = model.tensors.find(name);
    if (tensor == model.tensors.end())
      throw Error(fmt::format("model '{}' has no initializer '{}' any more; was the file changed?", path, name));
    const auto [at, added] = known.emplace(tensor->second, model.contents.size());
    if (added) model.contents.push_back({tensor->second, 0, field_of(*tensor->second)});
    ExportContents& contents = model.contents[at->second];
    if (added && tensor->second->data_location() == onnx::TensorProto::EXTERNAL) {  // of a split
      contents.file = contents.location = parameters[parameter].source.file;
    }
    contents.parameter = parameter;
    contents.transposed = transposed;
    contents.bytes = elements(parameters[parameter].shape) * stored_bytes(parameters[parameter].source.type);
  };
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    const Parameter& p = parameters[i];
    const bool split = !p.split_uses.empty();
    if (split && splits[i].empty()) continue;  // it is still what it was merged with
    bind(i, split ? splits[i] : p.source.initializer, false);
    if (split) continue;
    for (const ParameterAlias& alias : p.aliases) bind(i, alias.initializer, alias.transposed);
  }
}

bool take_out(ExportedModel& model, const std::string& location, int64_t largest) {
  int64_t inside = 0, taken_in = 0;
  for (const ExportContents& c : model.contents) {
    if (!c.location.empty()) continue;
    inside += c.bytes;
    if (!c.file.empty()) taken_in += c.bytes;
  }
  if (taken_in == 0 || inside <= largest) return false;
  for (ExportContents& c : model.contents) {
    if (!c.location.empty() || c.file.empty()) continue;
    c.location = location;
    c.tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  }
  return true;
}

std::map<const onnx::TensorProto*, TensorPath> tensor_paths(const onnx::GraphProto& graph) {
  std::map<const onnx::TensorProto*, TensorPath> paths;
  add_paths(graph, {}, paths);
  return paths;
}

}  // namespace zeroplan
