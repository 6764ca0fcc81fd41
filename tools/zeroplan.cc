// The command-line program. Exit codes: 0 done, 1 an error that was explained, 2 wrong usage.
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "tools/allocation.h"
#include "tools/commands.h"
#include "tools/suggest.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"zeroplan: train an exported ONNX model from a static, verified ZeRO plan", "zeroplan"};
  app.set_version_flag("--version", std::string("zeroplan ") + zeroplan::version());
  app.require_subcommand(1);
  zeroplan::add_train_command(app);
  zeroplan::add_inspect_command(app);
  zeroplan::add_compile_command(app);
  zeroplan::add_run_command(app);
  zeroplan::add_dump_command(app);
  zeroplan::add_verify_command(app);
  zeroplan::add_estimate_command(app);
  zeroplan::add_new_command(app);
  zeroplan::add_later_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "zeroplan: {}\n", zeroplan::explain_usage_error(app, error));
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  zeroplan::return_freed_memory();
  try {
    return run(argc, argv);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "zeroplan: cannot use '{}': {}\n", error.path1().string(), error.code().message());
    return 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "zeroplan: {}\n", error.what());
    return 1;
  }
}
