#pragma once
// Runs a plan on tags instead of numbers, for all ranks at once, with an adversarial schedule. Knows nothing of values, of the verifier or
// of the executor: only bytes, steps, streams and waits.
//
// Every byte holds a 64-bit tag. A kernel writes, for each output element, a hash of (op, attributes, output, element, all input tags);
// collectives move or fold tags across ranks; memory that nothing wrote holds tags that differ from run to run, and so do freed slots,
// workspace and the outputs of a step that has started and not finished. Two runs agree only where no step saw such bytes.
#include <cstdint>
#include <string>

#include "runtime/plan/plan.h"

namespace zeroplan::test {

struct Interpretation {
  std::string failure;  // deadlock, collectives out of step, bytes outside the arena; empty: none
  uint64_t result = 0;  // over the final weights of all ranks and every exported parameter
  bool operator==(const Interpretation&) const = default;
};

// load, micro_step ×2 (once where a step has one round), update, eval_step, eval_end, micro_step, update, save; the eval programs where
// the plan has them. Between two programs nothing outlives but state, and carried gradients from micro_step to update.
Interpretation interpret(const Plan& plan, uint64_t seed);

}  // namespace zeroplan::test
