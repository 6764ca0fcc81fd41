#pragma once
// The part of a plan's header that the compile options decide.
#include "graph/ir/graph.h"
#include "passes/compile_options.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Model path, digests, tool version and the list of options are left to the caller.
PlanHeader plan_header(const CompileOptions& options, const Loss& loss, int max_live_units);

}  // namespace zeroplan
