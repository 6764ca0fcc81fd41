#pragma once
// ONNX Runtime as a judge, through Python where both are installed. Nothing else in zeroplan uses Python.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host_tensor.h"

namespace zeroplan {

enum class OnnxRuntimeKernels {
  usual,
  plain,           // as the file has them: graph optimizations off
  exact_integers,  // products of integers that never saturate: session.x64quantprecision, which needs some of the optimizations
};

// The version, where `python` can import onnxruntime and numpy; else nullopt.
std::optional<std::string> onnxruntime_version(const std::string& python);
// Runs the model on the .npy files of `folder`, converted to the types of its inputs; outputs by name, as float64, those of a sequence as
// NAME[0], NAME[1], …; none for what is no tensor. Throws Error with what the runtime says.
std::map<std::string, HostTensor> run_onnxruntime(const std::string& python, const std::string& model, const std::string& folder,
                                                  const std::vector<std::string>& outputs, OnnxRuntimeKernels kernels);

}  // namespace zeroplan
