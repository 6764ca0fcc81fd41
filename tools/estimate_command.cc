// Memory and communication before anything is compiled for good: the published accounting for a parameter count, and for a model
// the plan's own bytes beside it.
#include <fmt/format.h>

#include "api/batching.h"
#include "api/zeroplan.h"
#include "base/error.h"
#include "tools/accounting.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"

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
  fmt::print("published accounting, mixed-precision Adam: 2 bytes of weights, 2 of gradients, 12 of optimizer per parameter; GB = 10^9 bytes\n");
  fmt::print("{:>8} {:>7}  {:>12}  {:>22}\n", "ranks", "stage", "GB per rank", "moved per round, GB");
  for (const int ranks : arguments.ranks)
    for (int stage = 0; stage <= 3; ++stage) {
      const double volume = 2 * arguments.parameters * published_volume_factor(stage) / 1e9;
      fmt::print("{:>8} {:>7}  {:>12.1f}  {:>22.1f}\n", ranks, stage, published_bytes(stage, arguments.parameters, ranks) / 1e9, volume);
    }
}

void print_plan_row(const Plan& plan, double parameters) {
  const PlanAccount account = account_of(plan);
  fmt::print("{:>8} {:>6}  {:>14.4f}  {:>10.4f} {:>10.4f} {:>10.4f}  {:>12.4f}  {:>12.4f}\n", plan.header.ranks, plan.header.stage,
             published_bytes(plan.header.stage, parameters, plan.header.ranks) / 1e9, account.state_bytes / 1e9, account.transient_bytes / 1e9,
             account.staging_bytes / 1e9, account.total_bytes() / 1e9, account.moved_bytes_per_step / 1e9);
}

void estimate_model(const Arguments& arguments) {
  CompileOptions options = arguments.compile.finish();
  fmt::print("published: 16-byte mixed-precision accounting of states alone. plan: what this program allocates per rank ({} bytes of weights, gradients and "
             "optimizer per parameter with adamw), GB = 10^9 bytes\n",
             options.precision == DType::f64 ? "8 + 8 + 16" : "4 + 4 + 8");
  fmt::print("{:>8} {:>6}  {:>14}  {:>10} {:>10} {:>10}  {:>12}  {:>12}\n", "ranks", "stage", "published GB", "state", "transient", "inputs", "plan total",
             "moved/step");
  int smallest = 0;
  for (const int ranks : arguments.ranks)
    for (int stage = 0; stage <= 3; ++stage) {
      CompileOptions one = options;
      one.ranks = ranks;
      one.stage = stage;
      const Plan plan = compile(arguments.model, one);
      double parameters = 0;
      for (const PlanParameter& p : plan.parameters) parameters += static_cast<double>(elements(p.parameter.shape));
      print_plan_row(plan, parameters);
      const bool fits = arguments.memory > 0 && account_of(plan).total_bytes() <= arguments.memory * 1e9;
      if (fits && stage == 3 && smallest == 0) smallest = ranks;
    }
  if (arguments.memory <= 0) return;
  if (smallest > 0) fmt::print("smallest rank count of these that fits {} GB at stage 3: {}\n", arguments.memory, smallest);
  else fmt::print("none of these rank counts fits {} GB at stage 3; try more ranks, a smaller batch or more micro-batches\n", arguments.memory);
}

void run(const Arguments& arguments) {
  if (arguments.model.empty() == (arguments.parameters == 0)) throw Error("give either a model or --params COUNT");
  if (arguments.parameters != 0 && !(arguments.parameters >= 1 && arguments.parameters <= 1e15))
    throw Error(fmt::format("--params {}: must be from 1 to 1e15", arguments.parameters));
  if (!(arguments.memory >= 0)) throw Error(fmt::format("--memory {}: must be 0 or more GB", arguments.memory));
  for (const int ranks : arguments.ranks)
    if (ranks < 1 || ranks > 65536) throw Error(fmt::format("--ranks {}: must be from 1 to 65536", ranks));
  if (arguments.model.empty()) estimate_parameters(arguments);
  else estimate_model(arguments);
}

}  // namespace

void add_estimate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("estimate", "memory and communication per stage and rank count");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx");
  command->add_option("--params", arguments->parameters, "parameter count, instead of a model (7.5e9)");
  command->add_option("--memory", arguments->memory, "GB per rank: also say which rank count fits");
  arguments->compile.declare(*command);
  command->remove_option(command->get_option("--ranks"));
  command->remove_option(command->get_option("--stage"));
  command->add_option("--ranks", arguments->ranks, "rank counts, comma separated")->delimiter(',')->capture_default_str();
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
