#include "graph/onnx/read_model.h"

#include <onnx/checker.h>
#include <onnx/inliner/inliner.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/locate.h"
#include "graph/onnx/metadata.h"
#include "graph/onnx/nested_tensors.h"
#include "graph/onnx/normalize.h"
#include "graph/onnx/parse_model.h"
#include "graph/onnx/plain_graph.h"
#include "graph/onnx/proto_checks.h"
#include "graph/onnx/tensor_data.h"
#include "graph/onnx/training_graph.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {
namespace {

// Runs library code that reports by exceptions of its own.
template <typename Fn>
void guarded(const char* what, Fn&& fn) {
  try {
    fn();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", what, error.what()));
  }
}

// `zeroplan new --no-weights` says so in the model's own properties.
bool weights_absent(const onnx::ModelProto& model) {
  for (const auto& entry : model.metadata_props())
    if (entry.key() == "ai.zeroplan.weights" && entry.value() == "absent") return true;
  return false;
}

// Tensors by name; those of subgraphs get one of their own. Initializers of the top-level graph may not share a name.
StoredTensors locate_tensors(WeightFiles& files, onnx::ModelProto& model, const WireModel& wire) {
  if (weights_absent(model)) files.set_absent();
  const onnx::GraphProto& graph = model.graph();
  StoredTensors stored;
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const onnx::TensorProto& tensor = graph.initializer(i);
    const auto payload = wire.initializers.find(i);
    const bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
    OnnxTensor located = external ? locate_external(files, tensor)
                                  : locate(tensor.name(), tensor, payload == wire.initializers.end() ? nullptr : &payload->second);
    if (tensor.name().empty()) throw Error(fmt::format("initializer {} has no name; export the model again", i));
    if (!stored.emplace(tensor.name(), std::move(located)).second)
      throw Error(fmt::format("two initializers are named '{}'; export the model again", tensor.name()));
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    const onnx::NodeProto& node = graph.node(i);
    const auto payload = wire.attributes.find({i, 0});
    if (!stores_tensor(node) || payload == wire.attributes.end()) continue;
    if (!stored.emplace(node.output(0), locate(node.output(0), node.attribute(0).t(), &payload->second)).second)
      throw Error(fmt::format("value '{}' is defined twice; export the model again", node.output(0)));
  }
  rename_nested(*model.mutable_graph());
  for (const NestedTensor& nested : nested_tensors(*model.mutable_graph()))
    if (const TensorPayload* payload = wire.find(nested.path); payload && !nested.name.empty())
      stored.emplace(nested.name, locate(nested.name, *nested.tensor, payload));
  return stored;
}

// A tensor without its data does not pass ONNX's checker, unless it is empty.
struct Hidden {
  onnx::TensorProto* tensor;
  Shape shape;
};

bool lacks_data(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return true;
  const bool typed = tensor.float_data_size() + tensor.double_data_size() + tensor.int32_data_size() + tensor.int64_data_size() +
                         tensor.uint64_data_size() >
                     0;
  return !typed && !tensor.has_raw_data() && tensor.data_type() != onnx::TensorProto::STRING && elements(tensor_shape(tensor)) > 0;
}

// All tensors that the wire walk has stripped, and external ones. Depth is bounded by kMaxMessageDepth.
void hide_stripped(onnx::GraphProto& graph, std::vector<Hidden>& hidden) {
  const auto hide = [&](onnx::TensorProto& tensor) {
    if (!lacks_data(tensor)) return;
    hidden.push_back({&tensor, tensor_shape(tensor)});
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.clear_dims();
    tensor.add_dims(0);
  };
  for (auto& tensor : *graph.mutable_initializer()) hide(tensor);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) hide(*attribute.mutable_t());
      if (attribute.has_g()) hide_stripped(*attribute.mutable_g(), hidden);
    }
}

void inline_functions(onnx::ModelProto& model) {
  if (model.functions_size() > 0)
    guarded("the model's functions cannot be inlined", [&] { onnx::inliner::InlineLocalFunctions(model, true); });
}

// Functions may be in an opset of their own, which ONNX's checker refuses and its inliner converts.
bool has_other_opset(const onnx::ModelProto& model, int opset) {
  return std::any_of(model.functions().begin(), model.functions().end(), [&](const onnx::FunctionProto& function) {
    return std::any_of(function.opset_import().begin(), function.opset_import().end(),
                       [&](const auto& import) { return is_default_domain(import.domain()) && import.version() != opset; });
  });
}

void check_and_convert(onnx::ModelProto& model, int opset) {
  for (auto& import : *model.mutable_opset_import())
    if (is_default_domain(import.domain())) import.clear_domain();
  const auto is_default = [](const auto& import) { return import.domain().empty(); };
  if (std::none_of(model.opset_import().begin(), model.opset_import().end(), is_default)) model.add_opset_import()->set_version(opset);
  model.clear_training_info();
  clear_unknown_dims(*model.mutable_graph());
  set_unknown_aside(model, opset);
  if (has_other_opset(model, opset)) {  // the converter asks for the types of what a function is given
    refuse_beside_functions(model);
    guarded("the types of the model's values cannot be inferred", [&] { onnx::shape_inference::InferShapes(model); });
    inline_functions(model);
  }
  std::vector<Hidden> hidden;
  hide_stripped(*model.mutable_graph(), hidden);
  guarded("ONNX's checker refuses the model", [&] { onnx::checker::check_model(model); });
  for (const Hidden& h : hidden) h.tensor->mutable_dims()->Assign(h.shape.begin(), h.shape.end());
  inline_functions(model);
  model.set_ir_version(std::max<int64_t>(model.ir_version(), 8));
  guarded("the model cannot be raised to a newer opset", [&] { raise_opset(model, opset); });
}

// The model file whole, and where a checkpoint beside it keeps its tensors; of each external tensor its length, first and last kilobytes,
// so that terabytes need not be read to compile.
std::string digest(WeightFiles& files, std::span<const std::byte> file, const StoredTensors& stored, const TrainingFacts& training) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> owner(XXH3_createState(), XXH3_freeState);
  XXH3_state_t* state = owner.get();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, file.data(), file.size());
  XXH3_128bits_update(state, training.identity.data(), training.identity.size());
  std::array<char, 4096> block;
  for (const auto& [name, tensor] : stored) {
    const WeightSource& source = tensor.source;
    if (source.file.empty() || files.absent()) continue;
    XXH3_128bits_update(state, &source.bytes, sizeof source.bytes);
    const int64_t n = std::min<int64_t>(block.size(), source.bytes);
    for (const int64_t at : {int64_t{0}, source.bytes - n}) {
      files.read(source.file, source.offset + at, n, block.data());
      XXH3_128bits_update(state, block.data(), n);
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Errors of a file name it.
template <typename Fn>
auto naming(const std::string& path, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    if (error.message().find(path) != std::string::npos) throw;
    throw Error(fmt::format("model '{}': {}", path, error.message()));
  }
}

OnnxModel read(WeightFiles& files) {
  const MappedFile file(files.model_path());
  WireModel wire = walk_model(file.bytes());
  onnx::ModelProto proto = parse_model(wire);
  OnnxModel model;
  model.path = files.model_path();
  model.producer = fmt::format("{}{}{}", proto.producer_name(), proto.producer_version().empty() ? "" : " ", proto.producer_version());
  model.opset = check_versions(proto);
  check_tensors(proto, wire);
  check_functions(proto);
  model.metadata = read_metadata(proto);
  model.training = reduce_to_forward(proto, &wire, files);
  const StoredTensors stored = locate_tensors(files, proto, wire);
  model.digest = digest(files, file.bytes(), stored, model.training);
  files.keep_digest(model.digest);
  check_and_convert(proto, model.opset);
  model.decoded_opset = std::max(model.opset, kTargetOpset);
  model.graph = plain_graph(proto.graph(), stored);
  return model;
}

std::string compute_digest(WeightFiles& files) {
  const MappedFile file(files.model_path());
  WireModel wire = walk_model(file.bytes());
  onnx::ModelProto proto = parse_model(wire);
  check_tensors(proto, wire);
  const TrainingFacts training = reduce_to_forward(proto, &wire, files);
  return digest(files, file.bytes(), locate_tensors(files, proto, wire), training);
}

}  // namespace

OnnxModel read_model(WeightFiles& files) {
  return naming(files.model_path(), [&] { return read(files); });
}

std::string read_digest(WeightFiles& files) {
  if (files.kept_digest().empty()) files.keep_digest(naming(files.model_path(), [&] { return compute_digest(files); }));
  return files.kept_digest();
}

}  // namespace zeroplan
