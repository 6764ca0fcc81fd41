#pragma once
// A small ONNX file as the loss of a model: its inputs are outputs of the model or data, its one output is the loss.
#include <map>
#include <string>

#include "graph/onnx/model.h"

namespace zeroplan {

// In front of every name of the loss file but those of its data.
inline constexpr const char* kLossModelPrefix = "loss_model.";

// `model` continued by the file, whose weights become constants. An input of the file is the output of the model that `map` states or that
// bears its name, else the model's input of that name, else data of that name. Throws Error naming what does not fit.
OnnxModel join_loss_model(const OnnxModel& model, const std::string& path, const std::map<std::string, std::string>& map);
// The loss of a joined model.
std::string loss_model_output(const OnnxModel& joined);

}  // namespace zeroplan
