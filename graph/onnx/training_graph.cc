#include "graph/onnx/training_graph.h"

#include "graph/onnx/forward_part.h"
#include "graph/onnx/ort_artifacts.h"
#include "graph/onnx/training_info.h"

namespace zeroplan {
TrainingFacts reduce_to_forward(onnx::ModelProto& model, WireModel* wire, WeightFiles& files) {
  TrainingFacts facts;
  add_training_info(model, wire, facts);
  if (add_artifacts(model, files, facts)) drop_unread(*model.mutable_graph(), wire);
  keep_forward(model, wire, facts);
  return facts;
}

}  // namespace zeroplan
