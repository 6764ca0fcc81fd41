// Runs the models of an ONNX backend suite forward and compares their outputs: conformance SUITE_FOLDER [--name PART] [--failures]
// [--reference].
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "graph/onnx/tensor_data.h"
#include "tests/conformance/forward.h"

namespace {

using namespace zeroplan;

// Tolerances of ONNX's own runner: |ours - expected| <= 1e-7 + 1e-3 |expected|.
bool close(double ours, double expected) {
  if (std::isnan(expected) || std::isnan(ours)) return std::isnan(expected) && std::isnan(ours);
  return ours == expected || std::abs(ours - expected) <= 1e-7 + 1e-3 * std::abs(expected);
}

// Empty where the two agree.
std::string difference(const SuiteTensor& expected, const HostTensor& ours) {
  if (ours.shape() != expected.values.shape())
    return fmt::format("output '{}' has shape {}, expected {}", expected.name, to_string(ours.shape()), to_string(expected.values.shape()));
  if (is_floating(ours.dtype()) != is_floating(expected.values.dtype()))
    return fmt::format("output '{}' is {}, expected {}", expected.name, dtype_name(ours.dtype()), onnx_type_name(expected.type));
  for (int64_t i = 0; i < ours.count(); ++i)
    if (!close(ours.get(i), expected.values.get(i)))
      return fmt::format("output '{}'[{}] is {}, expected {}", expected.name, i, ours.get(i), expected.values.get(i));
  return "";
}

// As a user would choose --precision for the data.
DType precision_of(const DataSet& set) {
  const auto is_double = [](const SuiteTensor& tensor) { return tensor.type == kOnnxDouble; };
  return std::any_of(set.inputs.begin(), set.inputs.end(), is_double) ? DType::f64 : DType::f32;
}

// Attributes that made the expected outputs of a case and are missing in its model; a line of the output says so.
struct Correction {
  const char* name;
  const char* attribute;
  float value;
};
constexpr Correction kCorrections[] = {{"test_adam_multiple", "epsilon", 0.01F}};

// The model of the case, or in `folder` a corrected copy.
std::string model_of(const SuiteCase& suite_case, const TemporaryFolder& folder) {
  for (const Correction& correction : kCorrections) {
    if (suite_case.name != correction.name) continue;
    onnx::ModelProto model;
    std::ifstream in(suite_case.model, std::ios::binary);
    if (!model.ParseFromIstream(&in)) throw Error("the model cannot be parsed");
    onnx::AttributeProto& attribute = *model.mutable_graph()->mutable_node(0)->add_attribute();
    attribute.set_name(correction.attribute);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(correction.value);
    fmt::print("  {}: run with {} = {}, which made its expected outputs and is not in its model\n", suite_case.name, correction.attribute,
               correction.value);
    write_file(folder.path() + "/model.onnx", model.SerializeAsString());
    return folder.path() + "/model.onnx";
  }
  return suite_case.model.string();
}

// Empty where the case passes.
std::string run_case(SuiteCase suite_case, bool reference) {
  try {
    load_case(suite_case);
    const TemporaryFolder folder;
    const ModelFile file(model_of(suite_case, folder));
    for (const DataSet& set : suite_case.sets) {
      const DType precision = precision_of(set);
      const Forward forward = import_forward(file, set, precision);
      const auto outputs = reference ? evaluate_reference(forward) : evaluate_plan(file, forward, precision);
      for (const SuiteTensor& expected : set.outputs)
        if (const std::string text = difference(expected, outputs.at(expected.name)); !text.empty()) return text;
    }
  } catch (const ErrorList& list) {
    return list.problems().empty() ? list.what() : list.problems()[0];
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Suites of the package, and what names the cases of two of them that belong to training.
constexpr std::array<const char*, 4> kSuites = {"node", "pytorch-converted", "pytorch-operator", "simple"};
constexpr std::array<const char*, 8> kTraining = {"sce_",       "nllloss_",         "adam",       "adagrad", "momentum",
                                                  "batchnorm_", "training_dropout", "gradient_of"};

bool is_training(const std::string& suite, const std::string& name) {
  return (suite == "node" || suite == "simple") &&
         std::any_of(kTraining.begin(), kTraining.end(), [&](const char* part) { return name.find(part) != std::string::npos; });
}

struct Score {
  int passed = 0, all = 0;
  void add(bool pass) {
    passed += pass;
    ++all;
  }
};

struct Arguments {
  std::string folder, part;
  std::vector<std::string> suites, required;  // required: SUITE=PASSED
  bool reference = false;
};

std::map<std::string, Score> run_suites(const Arguments& arguments) {
  std::map<std::string, Score> scores;
  for (const std::string& suite : arguments.suites)
    for (const SuiteCase& suite_case : list_cases(std::filesystem::path(arguments.folder) / suite)) {
      if (suite_case.name.find(arguments.part) == std::string::npos) continue;
      const std::string text = run_case(suite_case, arguments.reference);
      scores[suite].add(text.empty());
      if (is_training(suite, suite_case.name)) scores["training"].add(text.empty());
      if (!text.empty()) fmt::print("  {}: {}\n", suite_case.name, text.substr(0, text.find('\n')));
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
  app.add_flag("--reference", arguments.reference, "by the reference evaluators instead of a plan");
  CLI11_PARSE(app, argc, argv);
  const std::map<std::string, Score> scores = run_suites(arguments);
  for (const auto& [suite, score] : scores)
    fmt::print("{:<18} {:>4} of {:>4}  {:5.1f} %\n", suite, score.passed, score.all, 100.0 * score.passed / score.all);
  const std::vector<std::string> problems = misses(arguments, scores);
  for (const std::string& problem : problems) fmt::print("{}\n", problem);
  return problems.empty() ? 0 : 1;
}
