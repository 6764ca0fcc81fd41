#include <filesystem>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/counted.h"
#include "base/error.h"
#include "graph/onnx/exporter.h"
#include "graph/text/text.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/open_files.h"
#include "tools/output_files.h"
#include "tools/pass_output.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string model, output;
  CompileArguments compile;
  PassOutput passes;
  bool list_passes = false, eval = false;
};

// As given where the plan lies in this folder too, so that both can be moved together; else the plan names it by its full path.
std::string model_seen_from(const std::string& plan, const std::string& model) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(model, error);
  if (error) throw Error(fmt::format("the full path of '{}' cannot be found: {}; give the model by its full path", model, error.message()));
  return std::filesystem::path(plan).has_parent_path() ? whole.lexically_normal().string() : model;
}

void run(const Arguments& arguments) {
  if (arguments.list_passes) return print_pass_list();
  if (arguments.model.empty()) throw Error("give the model: zeroplan compile model.onnx -o model.zplan");
  const std::optional<Launch> launch = find_launch();
  CompileOptions options = arguments.compile.finish(launch ? launch->size : 1);
  options.eval = arguments.eval;
  const bool partial = !arguments.passes.stop_after().empty();
  if (!partial && arguments.output.empty()) throw Error("give the plan's file: -o model.zplan");
  arguments.passes.check_names();
  const std::vector<NamedFile> outputs = {{"-o", partial ? "" : arguments.output}, {"--emit-onnx", arguments.passes.viewer_file()}};
  check_outputs(outputs, {{"the model", arguments.model}});
  const ModelFile model = open_model(partial ? arguments.model : model_seen_from(arguments.output, arguments.model));
  if (partial) return arguments.passes.run_until(model, options);
  const Plan plan = compile(model, options, arguments.passes.observer());
  check_outputs(outputs, model_files(plan));
  save_plan(plan, arguments.output);
  for (const std::string& line : plan.report_lines) say("{}\n", line);
  say("batch {} in {}, {}, stage {}\n", plan.header.batch, counted(plan.header.micro_batches, "micro-batch"),
      counted(plan.header.ranks, "rank"), plan.header.stage);
  say("{}\nwrote {} ({})\n", memory_table(plan), arguments.output, plan.header.digest);
}

}  // namespace

void add_compile_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compile", "compile a model into a plan");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx");
  command->add_option("-o,--output", arguments->output, "plan file");
  command->add_flag("--eval", arguments->eval, "also plan evaluation");
  command->add_flag("--list-passes", arguments->list_passes, "print the passes in order");
  arguments->passes.declare(*command);
  arguments->compile.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
