#include <fmt/format.h>

#include "api/zeroplan.h"
#include "tools/commands.h"
#include "tools/open_files.h"

namespace zeroplan {

void add_verify_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "prove a plan free of hangs, races and lost gradients");
  auto path = std::make_shared<std::string>();  // shared with the callback, which outlives this function
  command->add_option("plan", *path, "model.zplan")->required();
  command->callback([path] {
    const Plan plan = open_plan(*path);
    require_verified(plan);
    size_t steps = 0;
    for (const PlanProgram& program : plan.programs) steps += program.steps.size();
    fmt::print("{}: {} programs, {} steps: verified\n", *path, plan.programs.size(), steps);
  });
}

}  // namespace zeroplan
