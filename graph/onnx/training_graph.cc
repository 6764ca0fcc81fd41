#include "graph/onnx/training_graph.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/forward_part.h"
#include "graph/onnx/ort_artifacts.h"

namespace zeroplan {
namespace {

bool is_default(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

void import_microsoft(onnx::ModelProto& model) {
  for (const auto& import : model.opset_import())
    if (import.domain() == "com.microsoft") return;
  auto& import = *model.add_opset_import();
  import.set_domain("com.microsoft");
  import.set_version(1);
}

// ONNX Runtime's training graphs use LayerNormalization below opset 17, where ONNX does not have it yet.
void move_early_operators(onnx::ModelProto& model) {
  for (const auto& import : model.opset_import())
    if (is_default(import.domain()) && import.version() >= 17) return;
  bool moved = false;
  for (auto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "LayerNormalization" || !is_default(node.domain())) continue;
    node.set_domain("com.microsoft");
    moved = true;
  }
  if (moved) import_microsoft(model);
}

}  // namespace

TrainingFacts reduce_to_forward(onnx::ModelProto& model, WireModel* wire, WeightFiles& files) {
  TrainingFacts facts;
  if (add_artifacts(model, files, facts)) drop_unread(*model.mutable_graph(), wire);
  keep_forward(model, wire, facts);
  move_early_operators(model);
  return facts;
}

}  // namespace zeroplan
