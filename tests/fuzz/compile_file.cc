#include "base/error.h"
#include "passes/pass.h"
#include "runtime/plan/verifier.h"
#include "tests/fuzz/input_options.h"
#include "tests/fuzz/targets.h"

namespace zeroplan {
namespace {

CompileOptions compile_options(const ImportOptions& import) {
  CompileOptions options;
  options.outputs = import.outputs;
  options.precision = import.precision;
  options.dims = import.dims;
  options.micro_batches = import.micro_batches;
  options.batch = import.micro_batches * import.samples;
  return options;
}

}  // namespace

void compile_file(const std::string& path) {
  try {
    const ModelFile file(path);
    ImportOptions options = input_options(path, file);
    options.outputs = file.output_names();
    if (options.outputs.empty()) return;
    Graph graph = file.decode(options).graph;
    run_pipeline(graph, compile_options(options));
    Plan plan = emit_plan(graph, compile_options(options));
    plan.header.digest = plan_digest(plan);
    const Verification verification = verify_plan(plan);
    check(verification.ok(), verification.ok() ? "" : verification.violations.front().message.c_str());
  } catch (const Error&) {
  }
}

}  // namespace zeroplan
