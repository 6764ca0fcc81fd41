#include "graph/onnx/ort_optimizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "graph/onnx/parse_model.h"
#include "graph/onnx/proto_attributes.h"

namespace zeroplan {
namespace {

// Defaults and meaning as in the operator's schema: mode 0 is PyTorch's AdamW, mode 1 Hugging Face's.
void read_adamw(const onnx::NodeProto& node, StatedOptimizer& out) {
  out.kind = "adamw";
  out.beta1 = float_attribute(node, "alpha", 0.9);
  out.beta2 = float_attribute(node, "beta", 0.999);
  out.eps = float_attribute(node, "epsilon", 1e-8);
  out.weight_decay = float_attribute(node, "weight_decay", 0.01);
  out.hugging_face = int_attribute(node, "adam_mode", 0) == 1;
  if (int_attribute(node, "correct_bias", 1) == 1) return;
  out.kind.clear();
  out.problem = "AdamWOptimizer without bias correction";
}

void read_node(const onnx::NodeProto& node, StatedOptimizer& out) {
  if (node.op_type() == "AdamWOptimizer") {
    read_adamw(node, out);
  } else if (node.op_type() == "SGDOptimizerV2") {
    out.kind = "sgd";
    out.weight_decay = 0;
  } else if (node.op_type() == "InplaceClipGradNorm") {
    out.clip = float_attribute(node, "max_norm", 1.0);
    const onnx::AttributeProto* norm = find_attribute(node, "norm_type");
    if (norm && norm->s() != "fro") out.problem = fmt::format("clipping by the norm '{}'", norm->s());
  } else if (out.problem.empty() && node.domain() == "com.microsoft" && node.op_type().find("Optimizer") != std::string::npos) {
    out.problem = node.op_type();
  }
}

}  // namespace

StatedOptimizer read_ort_optimizer(const std::string& path) {
  StatedOptimizer out;
  try {
    const MappedFile file(path);
    const onnx::ModelProto model = parse_model(walk_model(file.bytes()));
    for (const auto& node : model.graph().node()) read_node(node, out);
  } catch (const Error& error) {
    throw Error(fmt::format("optimizer model '{}': {}", path, error.message()));
  }
  if (!out.problem.empty()) out.kind.clear();
  if (!out.kind.empty()) return out;
  out.problem = fmt::format("optimizer model '{}' holds {}, which has no equivalent here; choose one with --optimizer", path,
                            out.problem.empty() ? "no optimizer that is known" : out.problem);
  return out;
}

}  // namespace zeroplan
