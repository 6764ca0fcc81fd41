#pragma once
// ONNX Runtime's training artifacts: <prefix>training_model.onnx or <prefix>eval_model.onnx, whose parameters are graph inputs without
// values, <prefix>checkpoint with the values, and <prefix>optimizer_model.onnx.
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "graph/ir/unit.h"
#include "graph/onnx/model.h"
#include "graph/onnx/weights.h"

namespace zeroplan {

// A folder of artifacts: its training model, else its evaluation model. Any other path comes back as it is. Throws Error on a folder
// that holds neither, or several.
std::string find_model_file(const std::string& path);

// Parameters that are graph inputs get an initializer that points into the checkpoint; roles and optimizer go to `facts`. False: no
// checkpoint lies beside the model, which stays as it is.
bool add_artifacts(onnx::ModelProto& model, WeightFiles& files, TrainingFacts& facts);

// The file among the artifacts that trained parameters are written into: the evaluation model where it has all of them, else `path`.
std::string export_file(const std::string& path, const std::vector<Parameter>& parameters);

}  // namespace zeroplan
