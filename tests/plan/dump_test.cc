#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"
#include "tests/plan/plans.h"

namespace zeroplan::test {
namespace {

TEST(Memory, RowsAddUpToTheArenas) {
  for (int stage : {0, 1, 2, 3})
    for (const Plan& plan : {residual_plan(2, stage), half_plan(2, stage, DType::f16)}) {
      std::array<int64_t, kArenas> sums{};
      for (const MemoryRow& row : memory_rows(plan)) {
        EXPECT_GE(row.bytes, 0) << row.name;
        sums[static_cast<int>(row.arena)] += row.bytes;
      }
      EXPECT_EQ(sums, plan.arena_bytes);
    }
}

TEST(Dump, StatesTypesInStorageOnTheWireAndInSums) {
  Plan plan = half_plan(2, 3, DType::bf16);
  const std::string text = dump_text(plan, 0);
  EXPECT_NE(text.find("weights kept bfloat16 beside a float32 master, gathered bfloat16; gradients reduced float32, added up and kept "
                      "float32; moments float32"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("wte.weight.weights weights bfloat16["), std::string::npos);
  EXPECT_NE(text.find("]  on the wire bfloat16"), std::string::npos);
  EXPECT_NE(text.find("wte.weight.reduce reduce buffers float32["), std::string::npos);
  EXPECT_NE(text.find("]  on the wire float32  added up in float32"), std::string::npos);
}

int64_t row(const Plan& plan, const std::string& name, Arena arena) {
  for (const MemoryRow& r : memory_rows(plan))
    if (r.name == name && r.arena == arena) return r.bytes;
  return -1;
}

TEST(Memory, ShardsAreCounted) {
  const Plan whole = residual_plan(2, 0), shards = residual_plan(2, 3);
  EXPECT_EQ(row(whole, "weights", Arena::state), 2 * row(shards, "weights", Arena::state));
  EXPECT_EQ(row(whole, "optimizer moments", Arena::state), 2 * row(shards, "optimizer moments", Arena::state));
  EXPECT_GT(row(shards, "slots", Arena::transient), 0);
  EXPECT_EQ(row(whole, "slots", Arena::transient), 0);
}

TEST(Memory, PeakIsReachedAtItsStep) {
  const Plan plan = residual_plan(2, 3);
  const LiveBytes live = live_bytes(plan, *find_program(plan, Program::micro_step));
  int64_t sum = 0;
  for (const LiveStorage& s : live.storages)
    if (s.first <= live.peak_step && live.peak_step <= s.last) sum += (s.bytes() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  EXPECT_EQ(sum, live.peak);
}

// From the reduce_scatter to the end of micro_step, from the start of update to the last use.
TEST(Memory, CarriedGradientsLiveInBothPrograms) {
  const Plan plan = residual_plan(2, 3);
  const PlanProgram &micro = *find_program(plan, Program::micro_step), &update = *find_program(plan, Program::update);
  const LiveBytes before = live_bytes(plan, micro), after = live_bytes(plan, update);
  int64_t carried = 0;
  for (int32_t t : carried_tensors(plan)) {
    carried += tensor_span_bytes(plan.tensors[t]);
    const auto same = [t](const LiveStorage& s) { return s.tensor == t; };
    const auto filled = std::find_if(before.storages.begin(), before.storages.end(), same);
    const auto read = std::find_if(after.storages.begin(), after.storages.end(), same);
    ASSERT_TRUE(filled != before.storages.end() && read != after.storages.end());
    EXPECT_EQ(micro.steps[filled->first].kind, StepKind::reduce_scatter);
    EXPECT_EQ(filled->last, static_cast<int>(micro.steps.size()) - 1);
    EXPECT_EQ(read->first, 0);
    EXPECT_EQ(update.steps[read->last].op, OpKind::optimizer_update);
  }
  EXPECT_GT(carried, 0);
  EXPECT_EQ(after.peak, carried);
  EXPECT_EQ(row(plan, "gradients", Arena::state), 0);
  EXPECT_EQ(row(residual_plan(2, 3, 1, 2), "gradients", Arena::state), carried);
  EXPECT_TRUE(carried_tensors(residual_plan(2, 3, 1, 2)).empty());
}

TEST(Dump, TextNamesWhatIsThere) {
  const Plan plan = residual_plan(2, 3);
  const std::string all = dump_text(plan, -1), one = dump_text(plan, 1);
  for (const std::string& text : {plan.header.digest, plan.units[0].name, std::string("program micro_step"), std::string("reduce_scatter"),
                                  std::string("lower bound"), std::string("option stage = 3"), std::string("peak of the transient arena"),
                                  std::string("carried to update: "), std::string("carried from micro_step: ")})
    EXPECT_NE(all.find(text), std::string::npos) << text;
  EXPECT_NE(all.find(" r0["), std::string::npos);
  EXPECT_EQ(one.find(" r0["), std::string::npos);
  EXPECT_NE(one.find(" r1["), std::string::npos);
  for (const PlanProgram& p : plan.programs) EXPECT_NE(all.find(std::to_string(p.steps.size()) + " steps"), std::string::npos);
  EXPECT_THROW(dump_text(plan, 2), Error);
}

TEST(Dump, JsonHoldsThePlan) {
  const Plan plan = residual_plan(2, 3);
  const auto json = nlohmann::json::parse(dump_json(plan));
  EXPECT_EQ(json["header"]["ranks"], 2);
  EXPECT_EQ(json["programs"].size(), plan.programs.size());
  EXPECT_EQ(json["tensors"].size(), plan.tensors.size());
}

TEST(Dump, TraceHasEveryStepOfEveryRank) {
  const Plan plan = residual_plan(3, 3);
  const auto json = nlohmann::json::parse(dump_trace(plan));
  size_t steps = 0, events = 0;
  for (const PlanProgram& p : plan.programs) steps += p.steps.size();
  for (const auto& e : json["traceEvents"]) events += e["ph"] == "X";
  EXPECT_EQ(events, 3 * steps);
}

TEST(Dump, PredictedTimesKeepStreamOrderAndWaits) {
  const Plan plan = residual_plan(2, 3);
  const PlanProgram& micro = *find_program(plan, Program::micro_step);
  const std::vector<StepTime> times = predicted_times(micro);
  double last[kStreams] = {};
  for (size_t i = 0; i < times.size(); ++i) {
    double& end = last[static_cast<int>(micro.steps[i].stream)];
    EXPECT_GE(times[i].begin_us, end);
    for (int32_t wait : micro.steps[i].waits) EXPECT_GE(times[i].begin_us, times[wait].end_us);
    end = times[i].end_us;
  }
}

TEST(Dump, DotHasOneNodePerStep) {
  const Plan plan = residual_plan(2, 3);
  const std::string dot = dump_dot(plan);
  size_t nodes = 0, steps = 0;
  for (size_t at = dot.find("[label="); at != std::string::npos; at = dot.find("[label=", at + 1)) ++nodes;
  for (const PlanProgram& p : plan.programs) steps += p.steps.size();
  EXPECT_EQ(nodes, steps);
  EXPECT_NE(dot.find("style=dashed"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan::test
