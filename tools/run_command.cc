#include "api/zeroplan.h"
#include "tools/commands.h"
#include "tools/run_arguments.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string plan;
  RunArguments run;
};

}  // namespace

void add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "train from a plan");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("plan", arguments->plan, "model.zplan")->required();
  arguments->run.declare(*command);
  command->callback([arguments] {
    arguments->run.check();
    arguments->run.execute(load_plan(arguments->plan));
  });
}

}  // namespace zeroplan
