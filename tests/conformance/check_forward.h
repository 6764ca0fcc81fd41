#pragma once
#include <string>

#include "tests/conformance/suite.h"

namespace zeroplan {

// Runs the model of the case on all its data sets, by a compiled plan or by the reference evaluators. Empty where the outputs are the
// expected ones, else the first problem.
std::string check_forward(SuiteCase suite_case, bool reference);

}  // namespace zeroplan
