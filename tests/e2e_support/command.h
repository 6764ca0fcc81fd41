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

}  // namespace zeroplan
