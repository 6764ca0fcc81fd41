// Rule wait: every wait is for a step that came earlier, on another stream, and that records.
#include "runtime/plan/verify_context.h"

namespace zeroplan {

void verify_waits(VerifyContext& context, const PlanProgram& program) {
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    for (int32_t wait : step.waits) {
      const Step& target = program.steps[wait];
      if (target.stream == step.stream)
        context.fail("wait", program, static_cast<int>(i), fmt::format("waits for step {} of its own stream", wait));
      else if (!target.records)
        context.fail("wait", program, static_cast<int>(i),
                     fmt::format("waits for step {} ({}), which records nothing", wait, describe_step(context.plan, target)));
    }
  }
}

}  // namespace zeroplan
