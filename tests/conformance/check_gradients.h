#pragma once
#include <array>
#include <string>

#include "tests/conformance/suite.h"

namespace zeroplan {

enum class Outcome : uint8_t { passed, failed, no_path, not_run };
constexpr std::array<const char*, 4> kOutcomes = {"passed", "failed", "no path", "not run"};

struct GradientResult {
  Outcome outcome{};
  std::string text;  // why it did not pass
};

// The built gradients of the case's model on its first data set against differences.
GradientResult check_gradients(SuiteCase suite_case);
// Has the model a floating-point input, and an operator that its schema marks differentiable?
bool is_differentiable(const SuiteCase& suite_case);

}  // namespace zeroplan
