// Plans with running statistics, broken by hand: each is refused under the rule's name with the step named.
#include "tests/plan/broken_plan.h"

namespace zeroplan::test {
namespace {

constexpr Program kUpdate = Program::update;

class BrokenStatistics : public BrokenPlan {
 protected:
  BrokenStatistics() { plan = normalized_plan(2, 3); }

  PlanUnit& unit() { return plan.units[plan.parameters[plan.statistics[0].mean].unit]; }
  int fold(int occurrence = 0) { return find(kUpdate, OpKind::fold_statistics, occurrence); }
};

TEST_F(BrokenStatistics, OfShardedUnits) {
  unit().weights = Placement::sharded;
  EXPECT_NE(violations(plan).find("whole on every rank"), std::string::npos);
}

TEST_F(BrokenStatistics, AmongOtherParameters) {
  plan.parameters[plan.statistics[0].mean].parameter.statistics = false;
  expect("format", kMicro, -1);
}

TEST_F(BrokenStatistics, WithoutARowPerMicroBatch) {
  plan.tensors[plan.statistics[0].recorded].shape[0] = 1;
  EXPECT_NE(violations(plan).find("a row per micro-batch"), std::string::npos);
}

TEST_F(BrokenStatistics, NotRecorded) {
  remove_step(program(kMicro), find(kMicro, OpKind::record_statistics));
  expect("statistics", kMicro, -1);
}

TEST_F(BrokenStatistics, NotFolded) {
  remove_step(program(kUpdate), fold(1));
  expect("statistics", kUpdate, -1);
}

TEST_F(BrokenStatistics, NotSummedOverRanks) {
  const int32_t recorded = step(kUpdate, fold()).inputs[1].tensor;
  const auto sums = [&](const Step& s) { return s.kind == StepKind::all_reduce && s.inputs[0].tensor == recorded; };
  const int sum = find(kUpdate, sums);
  const int32_t before = step(kUpdate, sum).inputs[0].value;
  remove_step(program(kUpdate), sum);
  step(kUpdate, fold()).inputs[1].value = before;
  expect("statistics", kUpdate, fold());
}

TEST_F(BrokenStatistics, WithAnotherMomentum) {
  step(kUpdate, fold()).attributes.set(Attr::momentum, 0.5);
  expect("statistics", kUpdate, fold());
}

TEST_F(BrokenStatistics, OfAnotherNode) {
  Step &first = step(kUpdate, fold(0)), &second = step(kUpdate, fold(1));
  const std::vector<int64_t> starts = first.attributes.get_ints(Attr::starts);
  first.attributes.set(Attr::starts, second.attributes.get_ints(Attr::starts));
  second.attributes.set(Attr::starts, starts);
  expect("statistics", kUpdate, fold(0));
  expect("statistics", kUpdate, fold(1));
}

TEST_F(BrokenStatistics, WhateverTheSkipFlagSays) {
  const auto folds = [](const Step& s) { return s.op == OpKind::fold_metrics; };
  step(kUpdate, fold()).inputs[2].value = step(kUpdate, find(kUpdate, folds)).outputs[0].value;
  expect("statistics", kUpdate, fold());
}

TEST_F(BrokenStatistics, LostAtTheEnd) {
  for (Operand& o : program(kUpdate).exit)
    if (o.tensor == unit().weights_tensor) o.value = step(kUpdate, fold(0)).outputs[0].value;
  expect("statistics", kUpdate, -1);
}

TEST_F(BrokenStatistics, WrittenByOthers) {
  const int index = find(kUpdate, OpKind::optimizer_update);
  step(kUpdate, index).op = OpKind::fold_statistics;
  EXPECT_FALSE(verify_plan(plan).ok());
}

// Sums over ranks inside of micro_step need a micro-batch on every rank.
TEST_F(BrokenStatistics, SummedWhereARankIsIdle) {
  plan = normalized_plan(2, 3, 1, true);
  const int index = find(kMicro, StepKind::all_reduce);
  plan.statistics.clear();
  plan.header.micro_batches = 1;
  expect("reduce", kMicro, index);
}

TEST_F(BrokenStatistics, SumThatTheModelDoesNotKnow) {
  plan = normalized_plan(2, 3, 1, true);
  const int index = find(kMicro, StepKind::all_reduce);
  plan.source.erase(std::find_if(plan.source.begin(), plan.source.end(), [](const SourceNode& n) { return n.op == OpKind::all_reduce; }));
  expect("source", kMicro, index);
}

}  // namespace
}  // namespace zeroplan::test
