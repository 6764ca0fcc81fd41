#include "graph/onnx/ort_artifacts.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "graph/onnx/ort_checkpoint.h"
#include "graph/onnx/ort_optimizer.h"
#include "graph/onnx/parse_model.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraining = "training_model.onnx";
constexpr const char* kEvaluation = "eval_model.onnx";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// What stands before `tail` in the file's name; false: the name does not end so.
bool prefix_of(const std::string& path, const char* tail, std::string& prefix) {
  const std::string name = fs::path(path).filename().string();
  if (!name.ends_with(tail)) return false;
  prefix = name.substr(0, name.size() - std::char_traits<char>::length(tail));
  return true;
}

std::vector<std::string> files_named(const std::string& folder, const char* tail) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().filename().string().ends_with(tail) && is_file(entry->path())) found.push_back(entry->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// Names of the files beside a model; empty where there is no checkpoint.
struct Beside {
  std::string folder, checkpoint, optimizer;
};

Beside beside(const std::string& path) {
  std::string prefix;
  if (!prefix_of(path, kTraining, prefix) && !prefix_of(path, kEvaluation, prefix)) return {};
  const std::string folder = fs::path(path).parent_path().string();
  if (!is_file(fs::path(folder) / (prefix + "checkpoint"))) return {};
  const std::string optimizer = prefix + "optimizer_model.onnx";
  return {folder, prefix + "checkpoint", is_file(fs::path(folder) / optimizer) ? optimizer : ""};
}

void point_into(onnx::TensorProto& tensor, const std::string& checkpoint, const CheckpointTensor& from) {
  tensor.set_name(from.name);
  tensor.set_data_type(from.type);
  for (const int64_t dim : from.shape) tensor.add_dims(dim);
  if (from.bytes == 0) return tensor.set_raw_data("");
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", from.external ? checkpoint + ".data" : checkpoint);
  add("offset", std::to_string(from.offset));
  add("length", std::to_string(from.bytes));
}

// Returns the inputs that it gave a value.
std::set<std::string> add_initializers(onnx::GraphProto& graph, const std::string& checkpoint, const OrtCheckpoint& values) {
  std::set<std::string> inputs, initialized, added;
  for (const auto& info : graph.input()) inputs.insert(info.name());
  for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
  for (const CheckpointTensor& tensor : values.tensors) {
    if (!inputs.count(tensor.name) || initialized.count(tensor.name)) continue;
    point_into(*graph.add_initializer(), checkpoint, tensor);
    added.insert(tensor.name);
  }
  auto& list = *graph.mutable_input();
  list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& info) { return added.count(info.name()) > 0; }), list.end());
  return added;
}

void read_roles(const OrtCheckpoint& values, const std::set<std::string>& added, TrainingFacts& facts) {
  int64_t trained = 0;
  for (const CheckpointTensor& tensor : values.tensors) {
    facts.identity += fmt::format("{}\n{} {} {}\n", tensor.name, tensor.external, tensor.offset, tensor.bytes);
    if (!added.count(tensor.name)) continue;
    facts.roles[tensor.name] = tensor.trained;
    trained += tensor.trained;
  }
  facts.stated_by = "the checkpoint";
  facts.report.push_back(fmt::format("ONNX Runtime's training artifacts: {} trained and {} frozen parameters from the checkpoint", trained,
                                     static_cast<int64_t>(added.size()) - trained));
  if (values.step > 0)
    facts.report.push_back(
        fmt::format("the checkpoint's optimizer has taken {} steps; its moments are not read, the optimizer starts anew", values.step));
}

}  // namespace

std::string find_model_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const char* tail : {kTraining, kEvaluation}) {
    const std::vector<std::string> found = files_named(path, tail);
    if (found.size() > 1)
      throw Error(fmt::format("folder '{}' holds several training models ('{}' and '{}'); name one", path, found[0], found[1]));
    if (found.size() == 1) return found[0];
  }
  throw Error(fmt::format("'{}' is a folder without training_model.onnx or eval_model.onnx; give the name of a file", path));
}

bool add_artifacts(onnx::ModelProto& model, WeightFiles& files, TrainingFacts& facts) {
  const Beside names = beside(files.model_path());
  if (names.checkpoint.empty()) return false;
  const MappedFile checkpoint((fs::path(names.folder) / names.checkpoint).string());
  if (!is_checkpoint(checkpoint.bytes())) return false;
  const OrtCheckpoint values = read_checkpoint(checkpoint.bytes());
  const std::set<std::string> added = add_initializers(*model.mutable_graph(), names.checkpoint, values);
  if (added.empty()) return false;
  model.set_ir_version(std::max<int64_t>(model.ir_version(), 4));  // from here on initializers need not be inputs too
  read_roles(values, added, facts);
  if (model.graph().output_size() > 0) facts.loss = model.graph().output(0).name();
  if (names.optimizer.empty()) return true;
  facts.optimizer = read_ort_optimizer((fs::path(names.folder) / names.optimizer).string());
  if (values.learning_rate > 0) facts.optimizer->lr = meant_decimal(values.learning_rate);
  if (!facts.optimizer->kind.empty())
    facts.report.push_back(fmt::format("{} states the optimizer {}", names.optimizer, describe(*facts.optimizer)));
  return true;
}

std::string export_file(const std::string& path, const std::vector<Parameter>& parameters) {
  std::string prefix;
  if (!prefix_of(path, kTraining, prefix) || beside(path).checkpoint.empty()) return path;
  const std::string evaluation = (fs::path(path).parent_path() / (prefix + kEvaluation)).string();
  if (!is_file(evaluation)) return path;
  const MappedFile file(evaluation);
  std::set<std::string> names;
  const onnx::ModelProto model = parse_model(walk_model(file.bytes()));
  for (const auto& info : model.graph().input()) names.insert(info.name());
  for (const auto& tensor : model.graph().initializer()) names.insert(tensor.name());
  const bool has_all =
      std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return names.count(p.source.initializer) > 0; });
  return has_all ? evaluation : path;
}

}  // namespace zeroplan
