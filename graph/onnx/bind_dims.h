#pragma once
// Static shapes for the inputs of a model.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/importer.h"
#include "graph/onnx/model.h"

namespace zeroplan {

struct BoundInput {
  std::string name;
  int type = 0;  // TensorProto.DataType
  Shape shape;
  int sample_axis = -1;
};

struct BoundDims {
  std::vector<BoundInput> inputs;
  std::map<std::string, int64_t> symbols;  // every bound symbol
  std::string sample_symbol;               // empty: baked, or no sample axis
  int64_t baked_batch = 0;
  int64_t samples = 0;                // 0: nothing has a sample axis
  std::vector<std::string> problems;  // unbound symbols with the inputs that carry them, and misfits
};

// The value as a constant of the input's rank: as it is, or a plain list of numbers in the input's shape. nullopt: it does not fit.
std::optional<HostTensor> bound_constant(const OnnxValueInfo& input, const HostTensor& value);
// The items of an input that is a sequence: NAME[0], NAME[1], … where they are bound, or NAME along its first axis. nullopt: it is not
// bound.
std::optional<std::vector<HostTensor>> bound_items(const OnnxValueInfo& input, const std::map<std::string, HostTensor>& bind);
// `labels`: an input that --loss adds, for which --sample-axis may be stated too.
BoundDims bind_dims(const OnnxGraph& graph, const ImportOptions& options, const std::string& labels = {});
ModelPeek peek_dims(const OnnxGraph& graph, const std::map<std::string, int>& sample_axes, const std::map<std::string, HostTensor>& bind);

}  // namespace zeroplan
