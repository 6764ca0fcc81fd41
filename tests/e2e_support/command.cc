#include "tests/e2e_support/command.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

Outcome run_command(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (!pipe) throw Error("cannot start " + command);
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) outcome.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

Outcome run_and_signal(const std::string& command, const std::string& metrics, const std::string& signals) {
  const std::string steps =
      fmt::format("for i in $(seq 600); do grep -qs step {0} && break; sleep 0.1; done; grep -qs step {0} || kill -KILL $!", metrics);
  return run_command(fmt::format("{{ {} --metrics {} & {}; {}; wait $!; }}", command, metrics, steps, signals));
}

}  // namespace zeroplan
