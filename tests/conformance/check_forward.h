#pragma once
#include <string>

#include "tests/conformance/suite.h"

namespace zeroplan {

struct ForwardResult {
  std::string problem;    // the first; empty: the outputs are the expected ones
  bool constant = false;  // the import had to know every input, so that constant folding gave the outputs
};

// Runs the model of the case on all its data sets, by a compiled plan or by the reference evaluators.
ForwardResult check_forward(SuiteCase suite_case, bool reference);

}  // namespace zeroplan
