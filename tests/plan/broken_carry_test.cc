// Plans whose carried gradients are broken by hand: each is refused under the rule's name with the step named.
#include "graph/ops/op_def.h"
#include "tests/plan/broken_plan.h"

namespace zeroplan::test {
namespace {

class BrokenCarry : public BrokenPlan {
 protected:
  int32_t carried(int unit) { return plan.units[step(kMicro, find(kMicro, StepKind::reduce_scatter, unit)).unit].gradient_tensor; }

  static Operand& at_border(std::vector<Operand>& border, int32_t tensor) {
    return *std::find_if(border.begin(), border.end(), [=](const Operand& o) { return o.tensor == tensor; });
  }

  void insert_step(Program which, int index, Step added) {
    for (Step& s : program(which).steps)
      for (int32_t& wait : s.waits) wait += wait >= index;
    program(which).steps.insert(program(which).steps.begin() + index, std::move(added));
  }
};

TEST_F(BrokenCarry, SeveralRounds) {
  plan.header.micro_batches = 2 * plan.header.ranks;
  expect("format", kMicro, -1);
  expect("reduce", kMicro, find(kMicro, StepKind::reduce_scatter));
}

TEST_F(BrokenCarry, AccumulatedInOneRound) {
  plan = residual_plan(2, 3, 1, 2);
  plan.header.micro_batches = plan.header.ranks;
  expect("format", kMicro, -1);
  expect("reduce", kMicro, find(kMicro, StepKind::reduce_scatter));
}

TEST_F(BrokenCarry, OntoWhatNobodyWrote) {
  const int index = find(kMicro, StepKind::reduce_scatter);
  Step& scatter = step(kMicro, index);
  scatter.inputs[0] = {carried(0), at_border(program(Program::update).entry, carried(0)).value};
  scatter.in_place = {{0, 0}};
  expect("reduce", kMicro, index);
}

TEST_F(BrokenCarry, WithoutAccumulatorOverRounds) {
  plan = residual_plan(2, 3, 1, 2);
  const int index = find(kMicro, StepKind::reduce_scatter);
  step(kMicro, index).inputs[0] = {};
  step(kMicro, index).in_place.clear();
  expect("reduce", kMicro, index);
}

TEST_F(BrokenCarry, OverTheBufferThatPeersRead) {
  const int index = find(kMicro, StepKind::reduce_scatter);
  plan.tensors[carried(0)].offset = plan.tensors[step(kMicro, index).inputs[1].tensor].offset;
  expect("overlap", kMicro, index);
}

TEST_F(BrokenCarry, LoadedLikeState) {
  const int index = find(Program::load, OpKind::load_unit);
  plan.values.push_back({"loaded", kNone});
  step(Program::load, index)
      .outputs.push_back({plan.units[step(Program::load, index).unit].gradient_tensor, static_cast<int32_t>(plan.values.size()) - 1});
  expect("format", Program::load, index);
}

TEST_F(BrokenCarry, LeftOutOfTheExit) {
  auto& exit = program(kMicro).exit;
  exit.erase(exit.begin() + (&at_border(exit, carried(0)) - exit.data()));
  expect("border", kMicro, -1);
}

TEST_F(BrokenCarry, LeftOutOfTheEntry) {
  auto& entry = program(Program::update).entry;
  entry.erase(entry.begin() + (&at_border(entry, carried(0)) - entry.data()));
  expect("border", Program::update, -1);
}

TEST_F(BrokenCarry, HandedOnUndefined) {
  at_border(program(kMicro).exit, carried(0)).value = kNone;
  expect("border", kMicro, -1);
}

TEST_F(BrokenCarry, ThroughOtherPrograms) {
  const Operand handed = at_border(program(kMicro).exit, carried(0));
  for (const Program which : {Program::load, kMicro, Program::eval_step, Program::eval_end, Program::save}) {
    program(which).entry.push_back(handed);
    expect("border", which, -1);
    program(which).entry.pop_back();
  }
  for (const Program which : {Program::load, Program::update, Program::eval_step, Program::eval_end, Program::save}) {
    program(which).exit.push_back(handed);
    expect("border", which, -1);
    program(which).exit.pop_back();
  }
}

TEST_F(BrokenCarry, TwoShareBytes) {
  plan.tensors[carried(1)].offset = plan.tensors[carried(0)].offset;
  expect("border", kMicro, -1);
}

TEST_F(BrokenCarry, OverwrittenInTheMicroStep) {
  const auto computes = [&](const Step& s) {
    return s.kind == StepKind::kernel && s.op != OpKind::fill_padding && plan.tensors[s.outputs[0].tensor].kind == TensorKind::activation;
  };
  const auto& steps = program(kMicro).steps;
  const int index = static_cast<int>(steps.rend() - std::find_if(steps.rbegin(), steps.rend(), computes)) - 1;
  ASSERT_GT(index, find(kMicro, StepKind::reduce_scatter));
  plan.tensors[step(kMicro, index).outputs[0].tensor].offset = plan.tensors[carried(0)].offset;
  expect("state", kMicro, index);
}

// The value's name alone does not make it the gradient.
TEST_F(BrokenCarry, ReplacedBeforeTheUpdate) {
  const Operand gradient = at_border(program(Program::update).entry, carried(0));
  Step zeros{.kind = StepKind::kernel, .op = OpKind::fill, .stream = StreamKind::compute, .outputs = {gradient}};
  const PlanTensor& shard = plan.tensors[gradient.tensor];
  zeros.attributes = fill_attributes(0, shard.shape, shard.dtype);
  insert_step(Program::update, 0, zeros);
  expect("state", Program::update, 0);
}

TEST_F(BrokenCarry, BoundWithoutIt) {
  plan.transient_lower_bound[static_cast<int>(Program::update)] = 0;
  set_digest(plan);
  EXPECT_NE(violations(plan).find("[memory] "), std::string::npos);
}

}  // namespace
}  // namespace zeroplan::test
