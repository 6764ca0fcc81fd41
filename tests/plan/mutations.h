#pragma once
// Random damage to a plan.
#include <random>
#include <string>

#include "runtime/plan/plan.h"

namespace zeroplan::test {

enum class Mutation { drop_wait, swap_steps, move_offset, drop_free, change_collective, redirect_read };
inline constexpr int kMutations = 6;
const char* mutation_name(Mutation mutation);

// Changes the plan; what it states of itself (digest, lower bounds, arena size) is made right again. Returns a description, empty where
// nothing changed.
std::string mutate(Plan& plan, Mutation mutation, std::mt19937_64& random);

// Removes or exchanges steps, with every wait following its step.
void remove_step(PlanProgram& program, int index);
void swap_with_next(PlanProgram& program, int index);
// Digest, lower bounds, arena size.
void restate(Plan& plan);

}  // namespace zeroplan::test
