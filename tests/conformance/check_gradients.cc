#include "tests/conformance/check_gradients.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "tests/conformance/gradients.h"

namespace zeroplan {
namespace {

// The operator's schema says that a gradient flows to some input.
bool is_differentiable(const onnx::NodeProto& node, const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (import.domain() != node.domain()) continue;
    const auto* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(import.version()), node.domain());
    if (schema == nullptr) return false;
    return std::any_of(schema->inputs().begin(), schema->inputs().end(), [](const onnx::OpSchema::FormalParameter& input) {
      return input.GetDifferentiationCategory() == onnx::OpSchema::DifferentiationCategory::Differentiable;
    });
  }
  return false;
}

bool is_floating_input(const onnx::ValueInfoProto& input) {
  static const std::set<int> floating = {onnx::TensorProto::FLOAT, onnx::TensorProto::DOUBLE, onnx::TensorProto::FLOAT16,
                                         onnx::TensorProto::BFLOAT16};
  return input.type().has_tensor_type() && floating.count(input.type().tensor_type().elem_type()) > 0;
}

}  // namespace

bool is_differentiable(const SuiteCase& suite_case) {
  onnx::ModelProto model;
  std::ifstream in(suite_case.model, std::ios::binary);
  if (!model.ParseFromIstream(&in)) return false;
  const auto& graph = model.graph();
  return std::any_of(graph.input().begin(), graph.input().end(), is_floating_input) &&
         std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto& node) { return is_differentiable(node, model); });
}

GradientResult check_gradients(SuiteCase suite_case) {
  try {
    load_case(suite_case);
    const ModelFile file(suite_case.model.string());
    const GradientProblem problem = make_problem(import_forward(file, suite_case.sets[0], DType::f64));
    if (problem.leaves.empty()) return {Outcome::no_path, "no gradient path from a floating-point input to a floating-point output"};
    bool zero = false;
    const std::string text = compare_gradients(problem, built_gradients(problem), zero);
    if (!text.empty()) return {Outcome::failed, text};
    return {Outcome::passed, zero ? "all zero, as the differences are" : ""};
  } catch (const ErrorList& list) {
    return {Outcome::not_run, list.problems().empty() ? list.what() : list.problems()[0]};
  } catch (const std::exception& error) {
    return {Outcome::not_run, error.what()};
  }
}

}  // namespace zeroplan
