// Rule memory: the arenas hold what lies in them and no more than stated, and the stated lower bounds are right.
#include "runtime/plan/memory.h"
#include "runtime/plan/verify_context.h"

namespace zeroplan {

void verify_memory(VerifyContext& context) {
  const Plan& plan = context.plan;
  for (int p = 0; p < kPrograms; ++p) {
    const PlanProgram* program = find_program(plan, static_cast<Program>(p));
    const int64_t bound = program ? live_bytes(plan, *program).peak : 0;
    context.result().live_lower_bound[p] = bound;
    if (bound != plan.transient_lower_bound[p])
      context.fail("memory", fmt::format("{} states at least {} live bytes, recomputed {}", program_name(static_cast<Program>(p)),
                                         plan.transient_lower_bound[p], bound));
    if (bound > plan.arena_bytes[static_cast<int>(Arena::transient)])
      context.fail("memory", fmt::format("{} needs {} live bytes, the transient arena has {}", program_name(static_cast<Program>(p)), bound,
                                         plan.arena_bytes[static_cast<int>(Arena::transient)]));
  }
}

}  // namespace zeroplan
