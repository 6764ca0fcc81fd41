#include <filesystem>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "runtime/cuda/cuda_backend.h"
#include "tools/commands.h"
#include "tools/open_files.h"
#include "tools/run_arguments.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string plan, device;
  RunArguments run;
};

// A model that the plan names by a relative path lies beside the plan, wherever this runs.
Plan load(const std::string& path) {
  Plan plan = open_plan(path);
  const std::filesystem::path beside = std::filesystem::path(path).parent_path() / plan.header.model_path;
  std::error_code unreadable;
  if (plan.header.digest != plan_digest(plan)) return plan;  // damaged: refused later
  if (!std::filesystem::exists(beside, unreadable)) {
    if (std::filesystem::exists(plan.header.model_path, unreadable)) return plan;
    throw Error(
        fmt::format("the plan {} was compiled from the model '{}', which is not there; put it back beside the plan, or compile again", path,
                    plan.header.model_path));
  }
  plan.header.model_path = beside.string();
  plan.header.digest = plan_digest(plan);
  return plan;
}

}  // namespace

void add_run_command(CLI::App& app, Processes& processes) {
  CLI::App* command = app.add_subcommand("run", "train from a plan");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("plan", arguments->plan, "model.zplan")->required();
  command->add_option("--device", arguments->device, "cpu or cuda; must be the plan's")->group("Run");
  arguments->run.declare(*command, processes);
  command->callback([arguments, &processes] {
    arguments->run.check({{"the plan", arguments->plan}});
    const Plan plan = load(arguments->plan);
    if (!arguments->device.empty() && arguments->device != device_kind_name(plan.header.device))
      throw Error(fmt::format("--device {}: {} is a plan for {}; compile it with --device {}", arguments->device, arguments->plan,
                              device_kind_name(plan.header.device), arguments->device));
    if (plan.header.device == DeviceKind::cuda) require_gpu();
    check_ranks(plan.header.ranks, arguments->plan + ": --ranks", processes);
    arguments->run.execute(plan, arguments->run.open(plan));
  });
}

}  // namespace zeroplan
