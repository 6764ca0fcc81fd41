#pragma once
// A folder of the ONNX backend suite: model.onnx and data sets of serialised tensors.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/host_tensor.h"

namespace zeroplan {

struct SuiteTensor {
  std::string name;
  int type = 0;       // TensorProto.DataType
  HostTensor values;  // in the graph's type; floating ones as double
};

struct DataSet {
  std::vector<SuiteTensor> inputs, outputs;  // by place; an output that is no tensor has type 0
  std::map<std::string, HostTensor> masks;   // see dropout_masks.h
};

struct SuiteCase {
  std::string name;
  std::filesystem::path model;
  std::vector<DataSet> sets;
};

// The cases of `folder`/*, by name. Contents are read by load_case.
std::vector<SuiteCase> list_cases(const std::filesystem::path& folder);
// Reads the data sets. Throws Error on tensors of types that have no place in a graph (strings), and on sequences and optionals.
void load_case(SuiteCase& suite_case);

}  // namespace zeroplan
