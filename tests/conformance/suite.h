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
  bool item = false;  // of a sequence or an optional: known at import. The items of a sequence are called NAME[0], NAME[1], …
};

struct DataSet {
  std::vector<SuiteTensor> inputs, outputs;  // by place
  std::vector<std::string> sequences;        // outputs that are
  std::map<std::string, HostTensor> masks;   // see dropout_masks.h
};

struct SuiteCase {
  std::string name;
  std::filesystem::path model;
  std::vector<DataSet> sets;
};

// The cases of `folder`/*, by name. Contents are read by load_case.
std::vector<SuiteCase> list_cases(const std::filesystem::path& folder);
// Reads the data sets. Throws Error on tensors of types that have no place in a graph (strings).
void load_case(SuiteCase& suite_case);

}  // namespace zeroplan
