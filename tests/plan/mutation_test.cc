#include <gtest/gtest.h>

#include "tests/plan/interpreter.h"
#include "tests/plan/mutations.h"
#include "tests/plan/plans.h"
#include "tests/sanitized.h"

namespace zeroplan::test {
namespace {

constexpr int kSchedules = 20;

TEST(Interpreter, SchedulesOfASafePlanAgree) {
  for (int ranks : {2, 3})
    for (int stage : {0, 1, 2, 3})
      for (int prefetch : {0, 2}) {
        SCOPED_TRACE(testing::Message() << "ranks " << ranks << " stage " << stage << " prefetch " << prefetch);
        for (const Plan& plan :
             {chain_plan(ranks, stage, prefetch, 1), residual_plan(ranks, stage, prefetch, 1), chain_plan(ranks, stage, prefetch, 2),
              residual_plan(ranks, stage, prefetch, 2), normalized_plan(ranks, stage, 2), normalized_plan(ranks, stage, 1, true)}) {
          const Interpretation first = interpret(plan, 1);
          EXPECT_EQ(first.failure, "");
          for (uint64_t seed = 2; seed < 8; ++seed) EXPECT_EQ(interpret(plan, seed), first) << "seed " << seed;
        }
      }
}

TEST(Interpreter, StageAndPrefetchChangeNothing) {
  const Interpretation expected = interpret(chain_plan(2, 3, 0), 1);
  for (int prefetch : {1, 2}) EXPECT_EQ(interpret(chain_plan(2, 3, prefetch), 1).result, expected.result);
}

// What update reads lies in bytes that other programs use: the run differs where the border spoils them.
TEST(Interpreter, SeesCarriedGradientsThatAreNotThere) {
  Plan plan = chain_plan(2, 3);
  const Interpretation safe = interpret(plan, 1);
  plan.units[0].gradient_tensor = plan.units[1].gradient_tensor;  // the border no longer knows of the first
  EXPECT_NE(interpret(plan, 1), safe);
  EXPECT_NE(interpret(plan, 1), interpret(plan, 2));
}

// Some schedule shows what a missing wait does.
TEST(Interpreter, SeesARace) {
  Plan plan = chain_plan(2, 3, 1);
  const Interpretation safe = interpret(plan, 1);
  for (PlanProgram& p : plan.programs)
    for (Step& s : p.steps) s.waits.clear();
  int different = 0;
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) different += !(interpret(plan, seed) == safe);
  EXPECT_GT(different, kSchedules / 2);
}

struct Count {
  int refused = 0, harmless = 0, missed = 0;
};

// The interpreter judges what the verifier lets through.
void judge(const Plan& mutant, const Interpretation& expected, const std::string& what, Count& count) {
  if (!verify_plan(mutant).ok()) {
    ++count.refused;
    return;
  }
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    const Interpretation got = interpret(mutant, seed * 7919);
    if (got == expected) continue;
    ++count.missed;
    ADD_FAILURE() << "accepted, but a schedule gives another result: " << what << " " << got.failure;
    return;
  }
  ++count.harmless;
}

// Mutates the plans in turn until `per_kind` mutants of each kind are judged; a tenth of them under a sanitizer.
void judge_mutants(const std::vector<Plan>& plans, int per_kind) {
  if (kSanitized) per_kind /= 10;
  std::vector<Interpretation> expected;
  for (const Plan& plan : plans) expected.push_back(interpret(plan, 1));
  std::mt19937_64 random(20240229);
  for (int k = 0; k < kMutations; ++k) {
    Count count;
    for (int n = 0; count.refused + count.harmless + count.missed < per_kind && n < 20 * per_kind; ++n) {
      Plan mutant = plans[n % plans.size()];
      const std::string what = mutate(mutant, static_cast<Mutation>(k), random);
      if (!what.empty()) judge(mutant, expected[n % plans.size()], what, count);
    }
    EXPECT_EQ(count.refused + count.harmless, per_kind);
    printf("%-20s refused %4d  accepted and harmless %4d  missed %d\n", mutation_name(static_cast<Mutation>(k)), count.refused,
           count.harmless, count.missed);
  }
}

TEST(Mutations, NothingHarmfulIsAccepted) {
  judge_mutants({residual_plan(2, 3), chain_plan(3, 1), residual_plan(2, 2), model_plan("mlp", 2, 0)}, 170);
}

TEST(Mutations, NothingHarmfulIsAcceptedWithTwoRounds) { judge_mutants({residual_plan(2, 3, 1, 2), chain_plan(2, 0, 1, 2)}, 60); }

TEST(Mutations, NothingHarmfulIsAcceptedWithBatchStatistics) {
  judge_mutants({normalized_plan(2, 3), normalized_plan(2, 1, 2), normalized_plan(2, 3, 1, true)}, 60);
}

TEST(Mutations, NothingHarmfulIsAcceptedForGpt2) { judge_mutants({model_plan("gpt2_nano_dynamo", 2, 3)}, 20); }

}  // namespace
}  // namespace zeroplan::test
