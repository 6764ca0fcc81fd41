#include "passes/passes.h"
#include "passes/simplify/rewrite.h"

namespace zeroplan {

bool dce(Graph& graph, const CompileOptions&) { return drop_dead_nodes(graph); }

}  // namespace zeroplan
