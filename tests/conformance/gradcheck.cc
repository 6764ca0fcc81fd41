// Checks built gradients of the models of an ONNX suite against differences in double: gradcheck SUITE_FOLDER [--name PART] [--failures].
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "tests/conformance/gradients.h"

namespace {

using namespace zeroplan;

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

// Counted in the figure of models that have a gradient to check.
bool is_candidate(const SuiteCase& suite_case) {
  onnx::ModelProto model;
  std::ifstream in(suite_case.model, std::ios::binary);
  if (!model.ParseFromIstream(&in)) return false;
  const auto& graph = model.graph();
  return std::any_of(graph.input().begin(), graph.input().end(), is_floating_input) &&
         std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto& node) { return is_differentiable(node, model); });
}

enum class Outcome : uint8_t { passed, failed, no_path, not_run };
constexpr std::array<const char*, 4> kOutcomes = {"passed", "failed", "no path", "not run"};

struct Result {
  Outcome outcome{};
  std::string text;
};

Result check_case(SuiteCase suite_case) {
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

// The vjp of `op` with every gradient negated: what must be found.
void (*plain_vjp)(VjpContext&) = nullptr;

void flipped_vjp(VjpContext& c) {
  plain_vjp(c);
  for (size_t i = 0; i < c.gradients().size(); ++i)
    if (c.gradients()[i] != kNone) c.set(static_cast<int>(i), c.build.add(OpKind::neg, {c.gradients()[i]}));
}

void flip(const std::string& op) {
  OpDef& def = const_cast<OpDef&>(op_def(parse_op(op)));
  if (!def.vjp) throw Error(fmt::format("operator '{}' has no vjp", op));
  plain_vjp = def.vjp;
  def.vjp = flipped_vjp;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Gradients of the ONNX backend suite against central differences in double");
  std::string folder, part, flipped;
  bool failures = false;
  double least = 0;
  app.add_option("folder", folder, "the suite: a folder of test folders")->required();
  app.add_option("--name", part, "only cases whose name contains this");
  app.add_option("--flip", flipped, "negate the vjp of this operator of the internal form");
  app.add_option("--require-tried", least, "fail where fewer percent of the models with a differentiable operator are tried");
  app.add_flag("--failures", failures, "a line per case that does not pass");
  CLI11_PARSE(app, argc, argv);
  if (!flipped.empty()) flip(flipped);
  std::array<int, 4> counts{};
  int candidates = 0, tried = 0;
  for (const SuiteCase& suite_case : list_cases(folder)) {
    if (suite_case.name.find(part) == std::string::npos) continue;
    const bool candidate = is_candidate(suite_case);
    const Result result = check_case(suite_case);
    ++counts[static_cast<size_t>(result.outcome)];
    candidates += candidate;
    tried += candidate && (result.outcome == Outcome::passed || result.outcome == Outcome::failed);
    const char* outcome = kOutcomes[static_cast<size_t>(result.outcome)];
    if (failures && result.outcome != Outcome::passed && (candidate || result.outcome == Outcome::failed))
      fmt::print("{}: {}: {}\n", suite_case.name, outcome, result.text.substr(0, result.text.find('\n')));
    std::fflush(stdout);
  }
  fmt::print("{} of {} models with a differentiable operator tried; {} passed, {} failed in all\n", tried, candidates, counts[0],
             counts[1]);
  return counts[1] == 0 && 100.0 * tried >= least * candidates ? 0 : 1;
}
