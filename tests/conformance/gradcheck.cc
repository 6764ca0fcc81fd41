// Checks built gradients of the models of an ONNX suite against differences in double; --help lists the options.
#include <array>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tests/conformance/check_gradients.h"
#include "tests/conformance/flipped_vjp.h"

using namespace zeroplan;

int main(int argc, char** argv) {
  CLI::App app("Gradients of the ONNX backend suite against central differences in double");
  std::string folder, part, flipped;
  bool failures = false;
  double least = 0;
  app.add_option("folder", folder, "the suite: a folder of test folders")->required();
  app.add_option("--name", part, "only cases whose name contains this");
  app.add_option("--flip", flipped, "negate the vjp of this operator of the internal form: a case must fail");
  app.add_option("--require-tried", least, "fail where fewer percent of the models with a differentiable operator are tried");
  app.add_flag("--failures", failures, "a line per case that does not pass");
  CLI11_PARSE(app, argc, argv);
  std::optional<FlippedVjp> flip;
  if (!flipped.empty()) flip.emplace(flipped);
  std::array<int, 4> counts{};
  int candidates = 0, tried = 0;
  for (const SuiteCase& suite_case : list_cases(folder)) {
    if (suite_case.name.find(part) == std::string::npos) continue;
    const bool candidate = is_differentiable(suite_case);
    const GradientResult result = check_gradients(suite_case);
    ++counts[static_cast<size_t>(result.outcome)];
    candidates += candidate;
    tried += candidate && (result.outcome == Outcome::passed || result.outcome == Outcome::failed);
    const char* outcome = kOutcomes[static_cast<size_t>(result.outcome)];
    if (failures && result.outcome != Outcome::passed && (candidate || result.outcome == Outcome::failed))
      fmt::print("{}: {}: {}\n", suite_case.name, outcome, result.text.substr(0, result.text.find('\n')));
    std::fflush(stdout);
  }
  fmt::print("{} of {} models with a differentiable operator tried; {} passed, {} failed in all\n", tried, candidates, counts[0],
             counts[1]);
  if (flip) return counts[static_cast<size_t>(Outcome::failed)] > 0 ? 0 : 1;
  return counts[1] == 0 && 100.0 * tried >= least * candidates ? 0 : 1;
}
