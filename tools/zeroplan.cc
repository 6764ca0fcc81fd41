// The command-line program. Exit codes: 0 done, 1 an error that was explained, 2 wrong usage.
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "tools/allocation.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/option_values.h"
#include "tools/processes.h"
#include "tools/suggest.h"

namespace {

using zeroplan::Failure;

// The command as typed; what is wrong with its words has exit code 2.
std::optional<Failure> run(int argc, char** argv, zeroplan::Processes& processes) {
  CLI::App app{"zeroplan: train an exported ONNX model from a static, verified ZeRO plan", "zeroplan"};
  app.set_version_flag("--version", std::string("zeroplan ") + zeroplan::version());
  app.require_subcommand(1);
  zeroplan::add_train_command(app, processes);
  zeroplan::add_inspect_command(app);
  zeroplan::add_compile_command(app);
  zeroplan::add_run_command(app, processes);
  zeroplan::add_doctor_command(app);
  zeroplan::add_predict_command(app);
  zeroplan::add_dump_command(app);
  zeroplan::add_verify_command(app);
  zeroplan::add_estimate_command(app);
  zeroplan::add_new_command(app);
  zeroplan::add_later_commands(app);
  zeroplan::check_option_values(app);
  try {
    zeroplan::check_equals_signs(argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    if (processes.first()) app.exit(success);
  } catch (const CLI::ParseError& error) {
    return Failure{zeroplan::explain_usage_error(app, error), 2};
  }
  processes.finish();
  const std::string problem = zeroplan::console_problem();
  if (!problem.empty()) return Failure{fmt::format("cannot write to the standard output: {}", problem)};
  return std::nullopt;
}

std::optional<Failure> try_run(int argc, char** argv, zeroplan::Processes& processes) {
  try {
    processes.join();
    return run(argc, argv, processes);
  } catch (const std::filesystem::filesystem_error& error) {
    return Failure{fmt::format("cannot use '{}': {}", error.path1().string(), error.code().message())};
  } catch (const zeroplan::Error& error) {
    return Failure{error.what(), 1, error.context().rank >= 0};
  } catch (const std::exception& error) {
    return Failure{error.what()};
  }
}

}  // namespace

int main(int argc, char** argv) {
  zeroplan::hold_closed_streams();
  zeroplan::return_freed_memory();
  try {
    zeroplan::Processes processes(argc > 1 ? argv[1] : "");
    if (processes.idle()) return 0;
    const std::optional<Failure> failure = try_run(argc, argv, processes);
    return failure ? processes.fail(*failure) : 0;
  } catch (const std::exception& error) {
    zeroplan::complain(error.what());
  }
  return 1;
}
