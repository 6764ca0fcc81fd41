// Runs the models of an ONNX backend suite forward and compares their outputs: conformance SUITE_FOLDER [--name PART] [--failures]
// [--reference].
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
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

// Empty where the case passes.
std::string run_case(SuiteCase suite_case, bool reference) {
  try {
    load_case(suite_case);
    const ModelFile file(suite_case.model.string());
    for (const DataSet& set : suite_case.sets) {
      const Forward forward = import_forward(file, set, DType::f32);
      const auto outputs = reference ? evaluate_reference(forward) : evaluate_plan(file, forward, DType::f32);
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

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Forward conformance on a folder of the ONNX backend suite");
  std::string folder, part;
  bool failures = false, reference = false;
  app.add_option("folder", folder, "the suite: a folder of test folders")->required();
  app.add_option("--name", part, "only cases whose name contains this");
  app.add_flag("--failures", failures, "a line per case that fails");
  app.add_flag("--reference", reference, "by the reference evaluators instead of a plan");
  CLI11_PARSE(app, argc, argv);
  int passed = 0, all = 0;
  for (const SuiteCase& suite_case : list_cases(folder)) {
    if (suite_case.name.find(part) == std::string::npos) continue;
    const std::string text = run_case(suite_case, reference);
    ++all;
    passed += text.empty();
    if (!text.empty() && failures) fmt::print("{}: {}\n", suite_case.name, text.substr(0, text.find('\n')));
    std::fflush(stdout);
  }
  fmt::print("{} of {}\n", passed, all);
}
