// Memory and communication before anything is compiled for good: the published accounting for a parameter count, and for a model
// the plan's own bytes beside it.
#include <cmath>

#include <fmt/format.h>

#include "api/batching.h"
#include "api/zeroplan.h"
#include "base/error.h"
#include "tools/accounting.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/open_files.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string model;
  double parameters = 0;
  std::vector<int> ranks = {1, 2, 8, 64};
  double memory = 0;  // GB per rank
  CompileArguments compile;
};

void estimate_parameters(const Arguments& arguments) {
  const auto [unit, size] = table_unit(published_bytes(0, arguments.parameters, 1));
  say("published accounting, mixed-precision Adam: 2 bytes of weights, 2 of gradients, 12 of optimizer per parameter; {} = 10^{:.0f} "
      "bytes\n",
      unit, std::log10(size));
  say("{:>8} {:>7}  {:>12}  {:>22}\n", "ranks", "stage", fmt::format("{} per rank", unit), fmt::format("moved per round, {}", unit));
  const auto cell = [size = size](double bytes) { return fmt::format("{:.{}f}", bytes / size, bytes >= size || bytes == 0 ? 1 : 2); };
  for (const int ranks : arguments.ranks)
    for (int stage = 0; stage <= 3; ++stage) {
      const double volume = 2 * arguments.parameters * published_volume_factor(stage);
      say("{:>8} {:>7}  {:>12}  {:>22}\n", ranks, stage, cell(published_bytes(stage, arguments.parameters, ranks)), cell(volume));
    }
}

void print_plan_row(const Plan& plan, double parameters) {
  const PlanAccount account = account_of(plan);
  say("{:>8} {:>6}  {:>10}  {:>10} {:>10} {:>10}  {:>10}  {:>10}\n", plan.header.ranks, plan.header.stage,
      bytes_text(published_bytes(plan.header.stage, parameters, plan.header.ranks)), bytes_text(account.state_bytes),
      bytes_text(account.transient_bytes), bytes_text(account.staging_bytes), bytes_text(account.total_bytes()),
      bytes_text(account.moved_bytes_per_step));
}

void print_plan_heading(const CompileOptions& options) {
  say("published: 16-byte mixed-precision accounting of states alone. plan: what this program allocates per rank ({} bytes of weights, "
      "gradients and optimizer per parameter with adamw); KB, MB, GB = 10^3, 10^6, 10^9 bytes\n",
      is_half(options.precision)        ? "2 + 4 + 12"
      : options.precision == DType::f64 ? "8 + 8 + 16"
                                        : "4 + 4 + 8");
  say("{:>8} {:>6}  {:>10}  {:>10} {:>10} {:>10}  {:>10}  {:>10}\n", "ranks", "stage", "published", "state", "transient", "inputs",
      "plan total", "moved/step");
}

void estimate_model(const Arguments& arguments) {
  const CompileOptions options = arguments.compile.finish();
  const ModelFile model = open_model(arguments.model);
  int smallest = 0;
  for (const int ranks : arguments.ranks)
    for (int stage = 0; stage <= 3; ++stage) {
      CompileOptions one = options;
      one.ranks = ranks;
      one.stage = stage;
      const Plan plan = compile(model, one);
      if (ranks == arguments.ranks.front() && stage == 0) print_plan_heading(options);  // what cannot be compiled has no table
      double parameters = 0;
      for (const PlanParameter& p : plan.parameters) parameters += static_cast<double>(elements(p.parameter.shape));
      print_plan_row(plan, parameters);
      const bool fits = arguments.memory > 0 && account_of(plan).total_bytes() <= arguments.memory * 1e9;
      if (fits && stage == 3 && smallest == 0) smallest = ranks;
    }
  if (arguments.memory <= 0) return;
  if (smallest > 0)
    say("smallest rank count of these that fits {} GB at stage 3: {}\n", arguments.memory, smallest);
  else
    say("none of these rank counts fits {} GB at stage 3; try more ranks, a smaller batch or more micro-batches\n", arguments.memory);
}

void run(const Arguments& arguments) {
  if (arguments.model.empty() == (arguments.parameters == 0)) throw Error("give either a model or --params COUNT");
  if (arguments.parameters != 0 && !(arguments.parameters >= 1 && arguments.parameters <= 1e15))
    throw Error(fmt::format("--params {}: must be from 1 to 1e15, such as 7.5e9", arguments.parameters));
  if (!(arguments.memory >= 0)) throw Error(fmt::format("--memory {}: must be 0 or more GB", arguments.memory));
  for (const int ranks : arguments.ranks)
    if (ranks < 1 || ranks > 65536) throw Error(fmt::format("--ranks {}: must be from 1 to 65536", ranks));
  if (arguments.model.empty())
    estimate_parameters(arguments);
  else
    estimate_model(arguments);
}

}  // namespace

void add_estimate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("estimate", "memory and communication per stage and rank count");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx");
  command->add_option("--params", arguments->parameters, "parameter count in digits or as 7.5e9, from 1 to 1e15, instead of a model");
  command->add_option("--memory", arguments->memory, "GB per rank, such as 16 or 0.5: also say which rank count fits");
  arguments->compile.declare(*command);
  command->remove_option(command->get_option("--ranks"));
  command->remove_option(command->get_option("--stage"));
  command->add_option("--ranks", arguments->ranks, "rank counts from 1 to 65536, comma separated")->delimiter(',')->capture_default_str();
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
