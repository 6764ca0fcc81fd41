#pragma once
#include "tests/conformance/suite.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace zeroplan {

// What the Dropout nodes of a case keep, by first output: the suite's expected outputs come from NumPy's legacy generator, seeded at each
// node.
std::map<std::string, HostTensor> numpy_dropout_masks(const onnx::GraphProto& graph, const DataSet& set);

}  // namespace zeroplan
