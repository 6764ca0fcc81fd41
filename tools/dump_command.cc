#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "runtime/plan/dump.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/open_files.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string plan, format = "text";
  int rank = 0;
};

void run(const Arguments& arguments) {
  const Plan plan = open_plan(arguments.plan);
  if (arguments.rank < 0 || arguments.rank >= plan.header.ranks)
    throw Error(fmt::format("--rank {}: the plan has ranks 0 to {}", arguments.rank, plan.header.ranks - 1));
  if (arguments.format == "text")
    say("{}", dump_text(plan, arguments.rank));
  else if (arguments.format == "json")
    write_console(dump_json(plan) + "\n");
  else if (arguments.format == "dot")
    say("{}", dump_dot(plan));
  else if (arguments.format == "trace")
    write_console(dump_trace(plan) + "\n");
  else if (arguments.format == "html")
    throw Error("--format html is not available yet; use text, json, dot or trace");
  else
    throw Error(fmt::format("--format {}: must be text, json, dot or trace", arguments.format));
}

}  // namespace

void add_dump_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("dump", "show a plan");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("plan", arguments->plan, "model.zplan")->required();
  command->add_option("--format", arguments->format, "text, json, dot (Graphviz) or trace (predicted Chrome trace)")->capture_default_str();
  command->add_option("--rank", arguments->rank, "whose byte ranges text shows")->capture_default_str();
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
