#pragma once
// Streams of steps and the waits between them.
#include "graph/ir/graph.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

StreamKind stream_of(OpKind op);

// Sets waits and records of every step, from what steps read and write: bytes written before they are read, read before they are
// overwritten. Streams are idle when a program starts. Waits that others imply are left out.
void assign_waits(const Plan& plan, PlanProgram& program);

}  // namespace zeroplan
