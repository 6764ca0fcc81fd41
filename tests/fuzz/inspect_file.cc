#include "base/error.h"
#include "tests/fuzz/input_options.h"
#include "tests/fuzz/targets.h"

namespace zeroplan {
namespace {

// A loss over an output, for a file that has none of its own; empty: its name has no form as an argument.
std::string loss_over(const std::string& output) {
  return output.find_first_of(",()=' ") == std::string::npos ? "mse(" + output + ", target)" : "";
}

}  // namespace

void inspect_file(const std::string& path) {
  try {
    const ModelFile file(path);
    ImportOptions options = input_options(path, file);
    std::vector<std::string> problems;
    file.inspect(options, problems);
    const std::vector<std::string> outputs = file.output_names();
    if (problems.empty() || outputs.empty()) return;
    options.loss = loss_over(outputs.front());
    if (!options.loss.empty()) file.inspect(options, problems);
  } catch (const Error&) {
  }
}

}  // namespace zeroplan
