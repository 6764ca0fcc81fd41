// The command-line program. Exit codes: 0 done, 1 an error that was explained, 2 wrong usage.
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "tools/allocation.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/launch.h"
#include "tools/option_values.h"
#include "tools/suggest.h"

namespace {

// Of several processes that a launcher started, rank 0 alone speaks; only training knows how to share work.
void join_launch(const std::string& command) {
  const std::optional<zeroplan::Launch> launch = zeroplan::find_launch();
  if (!launch) return;
  if (launch->rank > 0) zeroplan::silence_console();
  if (command != "train" && command != "run")
    throw zeroplan::Error(
        fmt::format("{} started {} processes, but '{}' works in one; start it without {}", launch->by, launch->size, command, launch->by));
}

int run(int argc, char** argv) {
  CLI::App app{"zeroplan: train an exported ONNX model from a static, verified ZeRO plan", "zeroplan"};
  app.set_version_flag("--version", std::string("zeroplan ") + zeroplan::version());
  app.require_subcommand(1);
  zeroplan::add_train_command(app);
  zeroplan::add_inspect_command(app);
  zeroplan::add_compile_command(app);
  zeroplan::add_run_command(app);
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
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    zeroplan::complain(zeroplan::explain_usage_error(app, error));
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  zeroplan::hold_closed_streams();
  zeroplan::return_freed_memory();
  try {
    if (argc > 1 && argv[1][0] != '-') join_launch(argv[1]);
    const int code = run(argc, argv);
    const std::string problem = zeroplan::console_problem();
    if (code != 0 || problem.empty()) return code;
    zeroplan::complain(fmt::format("cannot write to the standard output: {}", problem));
  } catch (const std::filesystem::filesystem_error& error) {
    zeroplan::complain(fmt::format("cannot use '{}': {}", error.path1().string(), error.code().message()));
  } catch (const zeroplan::PeerFailure&) {  // that rank says it
  } catch (const std::exception& error) {
    zeroplan::complain(error.what());
  }
  return 1;
}
