// Writes docs/coverage.md to standard output: coverage SUITES_FOLDER.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/normalize.h"
#include "graph/onnx/tensor_data.h"
#include "graph/onnx/value_lists.h"
#include "tests/conformance/check_forward.h"
#include "tests/conformance/check_gradients.h"
#include "tests/conformance/kernel_table.h"

namespace {

using namespace zeroplan;

// What a case of the node suite shows.
struct CaseResult {
  std::string op;  // that stands alone in the model; empty: several nodes
  std::set<std::string> types;
  bool forward = false, candidate = false;
  Outcome gradients{};
};

std::string key_of(const std::string& domain, const std::string& op) { return domain.empty() ? op : domain + "::" + op; }

CaseResult run_case(const SuiteCase& suite_case) {
  CaseResult result;
  onnx::ModelProto model;
  std::ifstream in(suite_case.model, std::ios::binary);
  if (model.ParseFromIstream(&in) && model.graph().node_size() == 1)
    result.op = key_of(model.graph().node(0).domain(), model.graph().node(0).op_type());
  for (const auto& input : model.graph().input())
    if (input.type().has_tensor_type()) result.types.insert(onnx_type_name(input.type().tensor_type().elem_type()));
  result.forward = check_forward(suite_case, false).problem.empty();
  result.candidate = is_differentiable(suite_case);
  result.gradients = check_gradients(suite_case).outcome;
  return result;
}

// Of an operator that stands alone in models.
struct Evidence {
  int passed = 0, all = 0, gradients = 0;
  std::set<std::string> types;  // of the inputs of passed models
};

std::map<std::string, Evidence> by_operator(const std::vector<CaseResult>& results) {
  std::map<std::string, Evidence> all;
  for (const CaseResult& result : results) {
    if (result.op.empty()) continue;
    Evidence& evidence = all[result.op];
    ++evidence.all;
    evidence.passed += result.forward;
    evidence.gradients += result.gradients == Outcome::passed;
    if (result.forward) evidence.types.insert(result.types.begin(), result.types.end());
  }
  return all;
}

bool is_control_flow(const std::string& op) { return op == "If" || op == "Loop" || op == "Scan"; }

std::string forward_of(const onnx::OpSchema& schema) {
  OnnxNode node;
  node.op = schema.Name();
  node.domain = schema.domain();
  if (find_decoder(node)) return "decoder";
  onnx::NodeProto proto;
  proto.set_op_type(schema.Name());
  if (schema.domain().empty() && find_rewrite(proto, kMaxOpset)) return "rewritten";
  if (schema.domain().empty() && is_control_flow(schema.Name())) return "folded or unrolled";
  if (makes_or_takes_lists(node)) return "lists at import";
  if (schema.domain() == "ai.onnx.preview.training" && schema.Name() == "Gradient") return "built at import";
  if (schema.HasFunction() || schema.HasContextDependentFunction()) return "function body";
  return "no";
}

void print_onnx(const std::map<std::string, Evidence>& evidence) {
  fmt::print("| operator | forward | node suite | gradient checked | types seen |\n| --- | --- | --- | --- | --- |\n");
  std::vector<onnx::OpSchema> schemas;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas())
    if (schema.domain().empty() || schema.domain() == "ai.onnx.preview.training") schemas.push_back(schema);
  std::sort(schemas.begin(), schemas.end(),
            [](const auto& a, const auto& b) { return key_of(a.domain(), a.Name()) < key_of(b.domain(), b.Name()); });
  for (const onnx::OpSchema& schema : schemas) {
    const std::string key = key_of(schema.domain(), schema.Name());
    const auto found = evidence.find(key);
    const Evidence e = found == evidence.end() ? Evidence{} : found->second;
    const std::string forward = forward_of(schema);
    fmt::print("| {} | {} | {} | {} | {} |\n", key, forward, e.all ? fmt::format("{} of {}", e.passed, e.all) : "",
               e.gradients ? fmt::format("{} models", e.gradients) : "", fmt::join(e.types, ", "));
  }
}

struct Scores {
  int forward = 0, cases = 0, tried = 0, candidates = 0, gradients = 0, failed = 0;
};

Scores score(const std::vector<CaseResult>& results) {
  Scores s;
  for (const CaseResult& result : results) {
    ++s.cases;
    s.forward += result.forward;
    s.candidates += result.candidate;
    s.tried += result.candidate && (result.gradients == Outcome::passed || result.gradients == Outcome::failed);
    s.gradients += result.gradients == Outcome::passed;
    s.failed += result.gradients == Outcome::failed;
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::vector<CaseResult> results;
  for (const SuiteCase& suite_case : list_cases(std::string(argv[1]) + "/node")) results.push_back(run_case(suite_case));
  const Scores s = score(results);
  fmt::print(
      "# Coverage\n\nWritten by `scripts/coverage.sh` from the tables of the program and from ONNX's node suite (Debian's "
      "libonnx-testdata, ONNX 1.12).\n\n");
  fmt::print(
      "Forward, by compiled plans and the kernels: {} of {} node cases. Gradients, built by the compiler, run through whole plans in "
      "double and "
      "compared with differences on the suite's own inputs: {} of the {} models with a floating-point input and an operator that its "
      "schema "
      "marks differentiable were tried; {} gradients agree, {} do not (all models with a gradient path). "
      "`scripts/conformance.sh` and `scripts/gradcheck.sh` name what does not pass, and why.\n\n",
      s.forward, s.cases, s.tried, s.candidates, s.gradients, s.failed);
  fmt::print(
      "## ONNX operators\n\n\"decoder\": composed of internal operators; \"function body\": expanded through the body that the schema has. "
      "The suite's "
      "figures count models of one node; all floating-point types run in the precision of the plan. An operator without "
      "any "
      "of these is refused by node name.\n\n");
  print_onnx(by_operator(results));
  fmt::print(
      "\n## Internal operators\n\nWhat plans are made of. A kernel of the CPU and one of CUDA works on each of the types, which are those "
      "of "
      "the first operand and follow from the operator's own rule; tests run it on both devices in all of them (`kernels_test`, and "
      "`cuda_kernels_test` in the builds for GPUs), and in each case of tests/op_cases in all floating-point ones. Operators without cases "
      "have tests of their own. Kernels of the CPU widen 16-bit operands to float32 where they do more than move them or work element by "
      "element.\n\n");
  print_internal_operators();
}
