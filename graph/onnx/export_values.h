#pragma once
// Trained values in the layout of the tensors that show them.
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "graph/onnx/exporter.h"

namespace zeroplan {

struct TrainedTensor {
  int parameter = -1;
  bool transposed = false;
};

using TrainedTensors = std::map<std::string, TrainedTensor>;  // by initializer

class ParameterValues {
 public:
  ParameterValues(const std::vector<Parameter>& parameters, const ParameterReader& read) : parameters_(parameters), read_(read) {}
  // Bytes for a tensor that shows the parameter, as stored (dtype of the source).
  void get(const TrainedTensor& target, std::vector<std::byte>& bytes) const;

 private:
  const std::vector<Parameter>& parameters_;
  const ParameterReader& read_;
};

// Streams the external tensors, trained or copied, into `data` in the order of their old offsets and points the model at them. False: there
// are none, and `data` was not created.
bool write_external(onnx::ModelProto& model, const std::string& model_path, const std::string& path, const TrainedTensors& trained,
                    const ParameterValues& values, OutputFile& data);

}  // namespace zeroplan
