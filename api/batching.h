#pragma once
// How an optimizer step's batch is cut into micro-batches.
#include <cstdint>

#include "passes/compile_options.h"

namespace zeroplan {

// Fills options.batch and options.micro_batches where they are 0, from the batch that the graph bakes in (0: none). Throws Error where
// V does not divide B, or the graph bakes another batch than B / V.
void resolve_batch(CompileOptions& options, int64_t baked_batch);

// Every option's name and effective value, as the plan's header keeps them.
std::vector<std::pair<std::string, std::string>> effective_options(const CompileOptions& options);

// Throws ErrorList naming each option out of range.
void check_options(const CompileOptions& options);

}  // namespace zeroplan
