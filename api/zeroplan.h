#pragma once
// The library's front door: compile a model, run the plan, read the result.
#include <map>
#include <memory>
#include <string>

#include "graph/onnx/exporter.h"
#include "graph/onnx/importer.h"
#include "passes/compile_options.h"
#include "passes/pass.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/verifier.h"

namespace zeroplan {

struct ModelInspection {
  ImportedModel model;                // as far as it could be imported
  std::vector<std::string> problems;  // everything that stands in the way of training
};

// Reads roles, loss and problems without giving up at the first; the batch defaults to one sample per micro-batch.
ModelInspection inspect(const ModelFile& file, CompileOptions options);

// Import, pipeline, emit, verify. Throws ErrorList with all problems of the model. A ModelFile is read once for many plans.
Plan compile(const ModelFile& file, CompileOptions options, const PassObserver& observer = {});
Plan compile(const std::string& model_path, CompileOptions options, const PassObserver& observer = {});
// The same up to and including pass `stop_after`; no plan.
Graph compile_until(const ModelFile& file, CompileOptions options, const std::string& stop_after, const PassObserver& observer = {});

// Weights by range, checked against the plan's digest. `files`: ModelFile::weights() of the model, which is then not read for its digest
// again; null: the files that the plan names.
WeightReader open_weights(const Plan& plan, std::shared_ptr<WeightFiles> files = nullptr);

// An executor with the plan's own weights, one thread group per rank.
std::unique_ptr<Executor> make_executor(const Plan& plan, ExecutorOptions options = {}, std::shared_ptr<WeightFiles> files = nullptr);

// Outputs of a forward plan (CompileOptions::outputs) over all samples, by name, joined along their sample axes.
std::map<std::string, HostTensor> predict(Executor& executor, const DataSource& data);

// The original with the trained weights. Throws Error where it is not the file any more that the plan was compiled from.
// In the process of rank 0; the processes of other ranks call give_to_export meanwhile.
ExportedFiles export_trained(Executor& executor, const std::string& path);
void give_to_export(Executor& executor);

const char* version();

}  // namespace zeroplan
