#pragma once
// One function per subcommand: adds it to the program, with a callback that does the work and throws Error.
#include <CLI/CLI.hpp>

#include "tools/processes.h"

namespace zeroplan {

void add_train_command(CLI::App& app, Processes& processes);
void add_inspect_command(CLI::App& app);
void add_compile_command(CLI::App& app);
void add_run_command(CLI::App& app, Processes& processes);
void add_doctor_command(CLI::App& app);
void add_predict_command(CLI::App& app);
void add_dump_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_estimate_command(CLI::App& app);
void add_new_command(CLI::App& app);
// diff, simulate, export: named, and refused until they exist.
void add_later_commands(CLI::App& app);

}  // namespace zeroplan
