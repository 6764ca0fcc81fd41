#pragma once
// A plan to be broken by hand, and what the verifier must say of it then.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/plan/mutations.h"
#include "tests/plan/plans.h"

namespace zeroplan::test {

constexpr Program kMicro = Program::micro_step;

class BrokenPlan : public testing::Test {
 protected:
  PlanProgram& program(Program which) {
    return *std::find_if(plan.programs.begin(), plan.programs.end(), [&](const PlanProgram& p) { return p.program == which; });
  }

  template <typename Fn>
  int find(Program which, Fn&& fn, int occurrence = 0) {
    const auto& steps = program(which).steps;
    for (size_t i = 0; i < steps.size(); ++i)
      if (fn(steps[i]) && occurrence-- == 0) return static_cast<int>(i);
    ADD_FAILURE() << "no such step";
    return 0;
  }
  int find(Program which, StepKind kind, int occurrence = 0) {
    return find(
        which, [=](const Step& s) { return s.kind == kind; }, occurrence);
  }
  int find(Program which, OpKind op, int occurrence = 0) {
    return find(
        which, [=](const Step& s) { return s.op == op; }, occurrence);
  }
  Step& step(Program which, int index) { return program(which).steps[index]; }

  // step < 0: of the program or plan as a whole.
  void expect(const std::string& rule, Program which, int index) {
    restate(plan);
    const Verification result = verify_plan(plan);
    const bool named = std::any_of(result.violations.begin(), result.violations.end(), [&](const Violation& v) {
      return v.rule == rule && v.step == index && (v.program.empty() || v.program == program_name(which));
    });
    EXPECT_TRUE(named) << "no violation of " << rule << " at step " << index << " among:\n" << violations(plan);
  }

  Plan plan = residual_plan(2, 3);
};

}  // namespace zeroplan::test
