#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/counted.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/open_files.h"

namespace zeroplan {

void add_verify_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "prove a plan free of hangs, races and lost gradients");
  auto path = std::make_shared<std::string>();  // shared with the callback, which outlives this function
  command->add_option("plan", *path, "model.zplan")->required();
  command->callback([path] {
    const Plan plan = open_plan(*path);
    require_verified(plan);
    int64_t steps = 0;
    for (const PlanProgram& program : plan.programs) steps += std::ssize(program.steps);
    say("{}: {}, {}: verified\n", *path, counted(std::ssize(plan.programs), "program"), counted(steps, "step"));
  });
}

}  // namespace zeroplan
