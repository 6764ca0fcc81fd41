#include "graph/onnx/importer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/bind_dims.h"
#include "graph/onnx/import_graph.h"
#include "graph/onnx/loss_model.h"
#include "graph/onnx/ort_artifacts.h"
#include "graph/onnx/read_model.h"

namespace zeroplan {
namespace {

// What libraries throw becomes an Error; a broken check stays what it is.
template <typename Fn>
auto guarded(const std::string& path, Fn&& fn) {
  try {
    return fn();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Error(fmt::format("model '{}' cannot be imported: {}", path, error.what()));
  }
}

// The model itself, or joined with the loss model that the options name.
template <typename Fn>
ImportedModel with_loss(const OnnxModel& model, const ImportOptions& options, Fn&& fn) {
  if (options.loss_model.empty()) return fn(model, options);
  const OnnxModel joined = join_loss_model(model, options.loss_model, options.loss_map);
  ImportOptions settled = options;
  settled.loss = loss_model_output(joined);
  return fn(joined, settled);
}

}  // namespace

struct ModelFile::Contents {
  explicit Contents(const std::string& path) : files(std::make_shared<WeightFiles>(find_model_file(path))), model(read_model(*files)) {}
  std::shared_ptr<WeightFiles> files;  // shared: readers of weights outlive the model
  OnnxModel model;
};

ModelFile::ModelFile(const std::string& path) : contents_(guarded(path, [&] { return std::make_unique<Contents>(path); })) {}

ModelFile::~ModelFile() = default;

std::shared_ptr<WeightFiles> ModelFile::weights() const { return contents_->files; }

const StatedOptimizer* ModelFile::stated_optimizer() const {
  const std::optional<StatedOptimizer>& optimizer = contents_->model.training.optimizer;
  return optimizer ? &*optimizer : nullptr;
}

std::vector<std::string> ModelFile::output_names() const {
  std::vector<std::string> names;
  for (const OnnxValueInfo& output : contents_->model.graph.outputs) names.push_back(output.name);
  return names;
}

ModelPeek ModelFile::peek(const std::map<std::string, int>& sample_axes, const std::map<std::string, HostTensor>& bind) const {
  return guarded(contents_->model.path, [&] { return peek_dims(contents_->model.graph, sample_axes, bind); });
}

ImportedModel ModelFile::decode(const ImportOptions& options) const {
  return guarded(contents_->model.path, [&] {
    return with_loss(contents_->model, options,
                     [&](const OnnxModel& model, const ImportOptions& settled) { return import_graph(model, *contents_->files, settled); });
  });
}

ImportedModel ModelFile::inspect(const ImportOptions& options, std::vector<std::string>& problems) const {
  return guarded(contents_->model.path, [&] {
    return with_loss(contents_->model, options, [&](const OnnxModel& model, const ImportOptions& settled) {
      return inspect_graph(model, *contents_->files, settled, problems);
    });
  });
}

ImportedModel import_model(const std::string& path, const ImportOptions& options) { return ModelFile(path).decode(options); }

}  // namespace zeroplan
