#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/verify_graph.h"
#include "graph/text/text.h"
#include "passes/pass.h"

namespace zeroplan {

void run_pipeline(Graph& graph, const CompileOptions& options, const PassObserver& observer, const std::string& stop_after) {
  verify_graph(graph);
  uint64_t before = graph_hash(graph);
  for (const Pass& pass : pipeline()) {
    const bool changed = pass.run(graph, options);
    verify_graph(graph);
    const uint64_t after = graph_hash(graph);
    check(changed == (before != after), fmt::format("pass {} says changed = {} but the graph disagrees", pass.name, changed).c_str());
    before = after;
    if (observer) observer(pass, graph);
    if (stop_after == pass.name) return;
  }
}

}  // namespace zeroplan
