#include <fmt/format.h>

#include "base/error.h"
#include "tools/commands.h"

namespace zeroplan {

void add_later_commands(CLI::App& app) {
  for (const char* name : {"diff", "simulate", "export"}) {
    CLI::App* command = app.add_subcommand(name, "(not available yet)")->group("")->allow_extras();
    command->callback([name] { throw Error(fmt::format("`zeroplan {}` is not available yet", name)); });
  }
}

}  // namespace zeroplan
