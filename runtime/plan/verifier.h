#pragma once
// Proves a plan safe from the plan alone; shares no code with the passes that made it. Near-linear in steps and operands.
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace zeroplan {

// The rules, by the name that messages carry. docs/verifier.md says what each one proves.
struct Violation {
  std::string rule;
  std::string program;  // empty: the plan as a whole
  int step = -1;
  std::string message;  // names tensors, values, units and steps
};

struct Verification {
  std::vector<Violation> violations;                  // at most 100
  std::array<int64_t, kPrograms> live_lower_bound{};  // bytes, recomputed
  bool ok() const { return violations.empty(); }
};

Verification verify_plan(const Plan& plan);
void require_verified(const Plan& plan);  // throws ErrorList

}  // namespace zeroplan
