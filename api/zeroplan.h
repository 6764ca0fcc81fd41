#pragma once
// The library's front door: compile a model, run the plan, read the result.
#include <memory>
#include <string>

#include "graph/onnx/importer.h"
#include "passes/compile_options.h"
#include "passes/pass.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/verifier.h"

namespace zeroplan {

struct ModelInspection {
  ImportedModel model;                 // as far as it could be imported
  std::vector<std::string> problems;   // everything that stands in the way of training
};

// Reads roles, loss and problems without giving up at the first; the batch defaults to one sample per micro-batch.
ModelInspection inspect(const std::string& model_path, CompileOptions options);

// Import, pipeline, emit, verify. Throws ErrorList with all problems of the model.
Plan compile(const std::string& model_path, CompileOptions options, const PassObserver& observer = {});
// The same up to and including pass `stop_after`; no plan.
Graph compile_until(const std::string& model_path, CompileOptions options, const std::string& stop_after, const PassObserver& observer = {});

// Weights by range from the files that the plan names, checked against their digest.
WeightReader open_weights(const Plan& plan, const std::string& model_path = {});  // empty: header.model_path

// An executor with the plan's own weights, one thread group per rank.
std::unique_ptr<Executor> make_executor(const Plan& plan, ExecutorOptions options = {});

// The trained model beside its original (graph/onnx/exporter.h).
void export_trained(Executor& executor, const std::string& path);

const char* version();

}  // namespace zeroplan
