// Runs the models of an ONNX backend suite forward and compares their outputs; --help lists the options.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tests/conformance/check_forward.h"

namespace {

using namespace zeroplan;

// Suites of the package, and what names the cases of two of them that belong to training.
constexpr std::array<const char*, 4> kSuites = {"node", "pytorch-converted", "pytorch-operator", "simple"};
constexpr std::array<const char*, 8> kTraining = {"sce_",       "nllloss_",         "adam",       "adagrad", "momentum",
                                                  "batchnorm_", "training_dropout", "gradient_of"};

bool is_training(const std::string& suite, const std::string& name) {
  return (suite == "node" || suite == "simple") &&
         std::any_of(kTraining.begin(), kTraining.end(), [&](const char* part) { return name.find(part) != std::string::npos; });
}

// What cannot agree, by parts of the names of cases, and why.
struct Reason {
  const char* part;
  const char* text;
};
constexpr const char* kLength = "expected of a length that is not whole; the operator's text divides by the length of the result";
constexpr const char* kStrings = "strings have no place in a graph";
constexpr std::array<Reason, 6> kReasons = {{
    {"bernoulli", "the generator that drew the expected numbers, and its state, are not in the file"},
    {"FLOAT_to_BFLOAT16", "floating-point values are computed in the precision of the run; a cast to a shorter type does not round"},
    {"downsample_scales_cubic_align_corners", kLength},
    {"downsample_scales_linear_align_corners", kLength},
    {"STRING", kStrings},
    {"strnorm", kStrings},
}};

std::string reason_of(const std::string& name) {
  for (const Reason& reason : kReasons)
    if (name.find(reason.part) != std::string::npos) return fmt::format(" ({})", reason.text);
  return "";
}

struct Score {
  int passed = 0, all = 0, constant = 0;
  void add(bool pass) {
    passed += pass;
    ++all;
  }
};

struct Arguments {
  std::string folder, part;
  std::vector<std::string> suites, required;  // required: SUITE=PASSED
  int most_constant = std::numeric_limits<int>::max();
  bool reference = false;
};

std::map<std::string, Score> run_suites(const Arguments& arguments) {
  std::map<std::string, Score> scores;
  for (const std::string& suite : arguments.suites)
    for (const SuiteCase& suite_case : list_cases(std::filesystem::path(arguments.folder) / suite)) {
      if (suite_case.name.find(arguments.part) == std::string::npos) continue;
      const auto [text, constant] = check_forward(suite_case, arguments.reference);
      scores[suite].add(text.empty());
      scores[suite].constant += constant;
      if (constant) fmt::print("  {}: its inputs are constants of the import\n", suite_case.name);
      if (is_training(suite, suite_case.name)) scores["training"].add(text.empty());
      if (!text.empty()) fmt::print("  {}: {}{}\n", suite_case.name, text.substr(0, text.find('\n')), reason_of(suite_case.name));
      std::fflush(stdout);
    }
  return scores;
}

// Requirements that the scores miss, a line each.
std::vector<std::string> misses(const Arguments& arguments, const std::map<std::string, Score>& scores) {
  std::vector<std::string> lines;
  for (const std::string& text : arguments.required) {
    const size_t at = text.find('=');
    const int least = std::stoi(text.substr(at + 1));
    const auto score = scores.find(text.substr(0, at));
    if (score == scores.end() || score->second.passed < least)
      lines.push_back(fmt::format("{}: fewer than {} pass", text.substr(0, at), least));
  }
  int constant = 0;
  for (const auto& [suite, score] : scores) constant += score.constant;
  if (constant > arguments.most_constant)
    lines.push_back(
        fmt::format("{} cases, more than {}, have constants alone, so that no kernel is tried", constant, arguments.most_constant));
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Forward conformance on the ONNX backend suites: a line per case that fails, then a line per suite");
  Arguments arguments;
  arguments.suites.assign(kSuites.begin(), kSuites.end());
  app.add_option("folder", arguments.folder, "folder that holds the suites")->required();
  app.add_option("--suite", arguments.suites, "these alone")->capture_default_str();
  app.add_option("--name", arguments.part, "only cases whose name contains this");
  app.add_option("--require", arguments.required, "SUITE=N: fail where fewer than N pass")->take_all();
  app.add_option("--most-constant", arguments.most_constant, "fail where the import has to know all inputs of more cases");
  app.add_flag("--reference", arguments.reference, "by the reference evaluators instead of a plan");
  CLI11_PARSE(app, argc, argv);
  const std::map<std::string, Score> scores = run_suites(arguments);
  for (const auto& [suite, score] : scores)
    fmt::print("{:<18} {:>4} of {:>4}  {:5.1f} %, {} of constants alone\n", suite, score.passed, score.all,
               100.0 * score.passed / score.all, score.constant);
  const std::vector<std::string> problems = misses(arguments, scores);
  for (const std::string& problem : problems) fmt::print("{}\n", problem);
  return problems.empty() ? 0 : 1;
}
