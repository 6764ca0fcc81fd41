#pragma once
// What in a model makes two sound computations of its outputs differ.
#include <map>
#include <string>

#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"
#include "tools/onnxruntime.h"

namespace zeroplan {

// Quantised models: ONNX Runtime's fast integer kernels saturate or round elsewhere.
OnnxRuntimeKernels wanted_kernels(const OnnxModel& model);

struct Tolerance {
  double relative = 1e-4;  // to the output's largest value
  std::string reason;      // "float16 in the file rounds by up to 2^-10 of it"; empty: it is the usual one
};

// By the type of the model's numbers that rounds most.
Tolerance forward_tolerance(const OnnxModel& model);

// Outputs that depend on random numbers -> the node that draws them: "node 'N' (Dropout)". `imported` is forward only.
std::map<std::string, std::string> random_outputs(const OnnxModel& model, const ImportedModel& imported);

}  // namespace zeroplan
