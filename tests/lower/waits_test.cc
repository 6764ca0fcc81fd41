// Waits of emitted plans against a happens-before relation computed step by step.
#include <gtest/gtest.h>

#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

using Order = std::vector<std::vector<bool>>;  // [a][b]: a is over before b starts

// Transitive closure of stream order and waits, leaving out one wait of one step.
Order order_of(const PlanProgram& program, int step_left_out = -1, size_t wait_left_out = 0) {
  const int count = static_cast<int>(program.steps.size());
  Order before(count, std::vector<bool>(count, false));
  for (int b = 0; b < count; ++b) {
    std::vector<int> direct;
    for (int a = b - 1; a >= 0; --a)
      if (program.steps[a].stream == program.steps[b].stream) {
        direct.push_back(a);
        break;
      }
    for (size_t w = 0; w < program.steps[b].waits.size(); ++w)
      if (b != step_left_out || w != wait_left_out) direct.push_back(program.steps[b].waits[w]);
    for (int a : direct) {
      before[a][b] = true;
      for (int c = 0; c < a; ++c)
        if (before[c][a]) before[c][b] = true;
    }
  }
  return before;
}

struct Access {
  Arena arena;
  int64_t begin, end;
  bool write;
};

std::vector<Access> accesses(const Plan& plan, const Step& step) {
  std::vector<Access> result;
  const auto add = [&](const Operand& o, bool write) {
    if (o.tensor == kNone) return;
    const PlanTensor& tensor = plan.tensors[o.tensor];
    int64_t bytes = tensor_span_bytes(tensor);
    if (tensor.per_rank) bytes *= plan.header.ranks;
    result.push_back({tensor.arena, tensor.offset, tensor.offset + bytes, write});
  };
  for (const Operand& o : step.inputs) add(o, false);
  for (const Operand& o : step.outputs) add(o, true);
  add(step.workspace, true);
  return result;
}

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a)
    for (const Access& y : b)
      if (x.arena == y.arena && (x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

// The first pair of conflicting steps that are not ordered; {-1, -1} without one.
std::pair<int, int> race(const Plan& plan, const PlanProgram& program, const Order& before) {
  std::vector<std::vector<Access>> all;
  for (const Step& step : program.steps) all.push_back(accesses(plan, step));
  for (size_t b = 0; b < all.size(); ++b)
    for (size_t a = 0; a < b; ++a)
      if (!before[a][b] && conflict(all[a], all[b])) return {static_cast<int>(a), static_cast<int>(b)};
  return {-1, -1};
}

std::vector<Plan> plans() {
  std::vector<Plan> result;
  for (int stage : {0, 1, 3})
    for (int prefetch : {0, 2}) {
      result.push_back(compile_graph(chain(8, {10, 20, 10, 20, 10}, true), options_of(3, stage, prefetch)));
      result.push_back(compile_graph(residual(2, 8, 12, 50), options_of(3, stage, prefetch)));
    }
  return result;
}

TEST(Waits, OrderEveryConflict) {
  for (const Plan& plan : plans())
    for (const PlanProgram& program : plan.programs)
      EXPECT_EQ(race(plan, program, order_of(program)), std::pair(-1, -1)) << program_name(program.program);
}

TEST(Waits, NoneIsImpliedByOthers) {
  for (const Plan& plan : plans())
    for (const PlanProgram& program : plan.programs)
      for (size_t b = 0; b < program.steps.size(); ++b)
        for (size_t w = 0; w < program.steps[b].waits.size(); ++w) {
          const Order without = order_of(program, static_cast<int>(b), w);
          EXPECT_FALSE(without[program.steps[b].waits[w]][b]) << "step " << b;
        }
}

TEST(Waits, AreNeeded) {
  const Plan plan = compile_graph(chain(8, {10, 20, 10, 20}, true), options_of(2, 3));
  const PlanProgram& program = *find_program(plan, Program::micro_step);
  int waits = 0;
  for (size_t b = 0; b < program.steps.size(); ++b)
    for (size_t w = 0; w < program.steps[b].waits.size(); ++w, ++waits)
      EXPECT_NE(race(plan, program, order_of(program, static_cast<int>(b), w)), std::pair(-1, -1)) << "step " << b;
  EXPECT_GT(waits, 5);
}

TEST(Waits, CollectivesHaveAStreamPerCommunicator) {
  for (const Plan& plan : plans())
    for (const PlanProgram& program : plan.programs)
      for (const Step& step : program.steps) {
        const StreamKind expected = step.kind == StepKind::all_gather                                            ? StreamKind::gather
                                    : step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce ? StreamKind::reduce
                                                                                                                 : StreamKind::compute;
        EXPECT_EQ(step.stream, expected);
      }
}

}  // namespace
}  // namespace zeroplan::test
