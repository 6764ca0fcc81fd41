#pragma once
// Commands as a user types them.
#include <string>

namespace zeroplan {

struct Outcome {
  int code = -1;       // exit code; -1: ended by a signal
  std::string output;  // standard output and errors together
};

// Throws Error where no shell can be started.
Outcome run_command(const std::string& command);
// A training command in the background: once its metrics file `metrics` has a line, `signals` (a shell command; $! is the process) is done,
// then its end awaited. A training that makes no step within a minute is killed.
Outcome run_and_signal(const std::string& command, const std::string& metrics, const std::string& signals);

}  // namespace zeroplan
