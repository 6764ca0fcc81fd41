#pragma once
// The forward of a suite's model on one of its data sets.
#include "graph/onnx/importer.h"
#include "tests/conformance/suite.h"

namespace zeroplan {

struct Forward {
  ImportedModel model;                      // forward only
  std::map<ValueId, HostTensor> values;     // inputs and parameters
  std::map<std::string, HostTensor> bound;  // inputs that had to be constants
  std::map<std::string, int64_t> dims;      // symbols by the data
  std::map<std::string, HostTensor> masks;  // of Dropout nodes
  std::vector<std::string> outputs;         // that are wanted; the items of a sequence are outputs of their own
};

// Imports the model for the data set. Inputs whose contents must be known at import are bound to those of the set, integers first; what
// stays open is data. Throws the error of the last attempt.
Forward import_forward(const ModelFile& file, const DataSet& set, DType precision);

// Outputs by name: by the reference evaluators, or by a plan on one rank (forward only, the kernels of this machine).
std::map<std::string, HostTensor> evaluate_reference(const Forward& forward);
std::map<std::string, HostTensor> evaluate_plan(const ModelFile& file, const Forward& forward, DType precision);

}  // namespace zeroplan
