#include "passes/edit/reads.h"
#include "passes/passes.h"

namespace zeroplan {

bool dce(Graph& graph, const CompileOptions&) { return drop_dead_nodes(graph); }

}  // namespace zeroplan
