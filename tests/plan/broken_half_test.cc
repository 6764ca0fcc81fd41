// Plans in 16 bits, broken by hand: each is refused under the rule's name with the step named.
#include "tests/plan/broken_plan.h"

namespace zeroplan::test {
namespace {

constexpr Program kUpdate = Program::update;

class BrokenHalf : public BrokenPlan {
 protected:
  BrokenHalf() { plan = half_plan(2, 3, DType::f16); }

  int update() { return find(kUpdate, OpKind::optimizer_update); }
  int clip() { return find(kUpdate, OpKind::clip_factor); }
  int fold() { return find(kUpdate, OpKind::fold_metrics); }
};

TEST_F(BrokenHalf, IsSafeBefore) {
  for (const DType precision : {DType::bf16, DType::f16})
    for (int stage = 0; stage <= 3; ++stage)
      for (const int rounds : {1, 2}) EXPECT_EQ(violations(half_plan(2, stage, precision, rounds)), "");
}

TEST_F(BrokenHalf, WithoutAMaster) {
  plan.tensors[plan.units[0].moment_tensors[0]].kind = TensorKind::moments;
  EXPECT_NE(violations(plan).find("not the master"), std::string::npos);
}

TEST_F(BrokenHalf, ExportedAsItWasRounded) {
  plan = half_plan(2, 2, DType::f16);  // its weights are whole
  const int index = find(Program::save, OpKind::export_unit);
  Step& s = step(Program::save, index);
  s.inputs[0].tensor = plan.units[s.unit].weights_tensor;
  expect("format", Program::save, index);
}

TEST_F(BrokenHalf, ReducedInAnotherType) {
  const int index = find(kMicro, StepKind::reduce_scatter);
  plan.units[step(kMicro, index).unit].reduce_dtype = DType::bf16;
  expect("format", kMicro, index);
}

TEST_F(BrokenHalf, ScaleThatIsNotDividedOut) {
  step(kUpdate, fold()).inputs.pop_back();
  expect("update", kUpdate, fold());
}

TEST_F(BrokenHalf, ScaleThatDoesNotMove) {
  for (Operand& o : program(kUpdate).exit)
    if (o.tensor == plan.roles.loss_scale) o.value = step(kUpdate, clip()).inputs[2].value;
  expect("update", kUpdate, clip());
}

TEST_F(BrokenHalf, ScaleWithoutCounters) {
  plan.roles.overflows = kNone;
  EXPECT_NE(violations(plan).find("both or none"), std::string::npos);
}

TEST_F(BrokenHalf, LimbsThatCountNoOverflow) {
  PlanTensor& limbs = plan.tensors[plan.roles.norm_limbs];
  limbs.shape[0] -= 1;
  EXPECT_NE(violations(plan).find("limbs of the norm"), std::string::npos);
}

TEST_F(BrokenHalf, SumsOfHalvesOverRanks) {
  const int index = find(kUpdate, StepKind::all_reduce);
  plan.tensors[step(kUpdate, index).inputs[0].tensor].dtype = DType::f16;
  EXPECT_NE(violations(plan).find("an all_reduce sums f64 or i64"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan::test
