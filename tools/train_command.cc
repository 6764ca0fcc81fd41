#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/counted.h"
#include "base/error.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/open_files.h"
#include "tools/run_arguments.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string model;
  CompileArguments compile;
  RunArguments run;
};

void run(const Arguments& arguments, const Processes& processes) {
  CompileOptions options = arguments.compile.finish(processes.launch() ? processes.launch()->size : 1);
  check_ranks(options.ranks, "--ranks", processes);
  arguments.run.check({{"the model", arguments.model}});
  if (options.device == DeviceKind::cuda) require_gpu();
  options.eval = arguments.run.wants_eval();
  std::shared_ptr<WeightFiles> weights;  // shared: the executor's readers keep it
  const Plan plan = [&] {
    const ModelFile model = open_model(arguments.model);
    weights = model.weights();
    return compile(model, options);
  }();
  const RunData data = arguments.run.open(plan);
  for (const std::string& line : plan.report_lines) say("{}\n", line);
  say("batch {} in {}, {}, stage {}\n", plan.header.batch, counted(plan.header.micro_batches, "micro-batch"),
      counted(plan.header.ranks, "rank"), plan.header.stage);
  say("{}\n", memory_table(plan, processes.job() ? Hosting::processes : Hosting::threads));
  arguments.run.execute(plan, data, weights);
}

}  // namespace

void add_train_command(CLI::App& app, Processes& processes) {
  CLI::App* command = app.add_subcommand("train", "compile and run in one go");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx")->required();
  arguments->compile.declare(*command);
  arguments->run.declare(*command, processes);
  command->callback([arguments, &processes] { run(*arguments, processes); });
}

}  // namespace zeroplan
