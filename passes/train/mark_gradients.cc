#include "base/error.h"
#include "passes/passes.h"

namespace zeroplan {

bool mark_gradients(Graph& graph, const CompileOptions& options) {
  bool changed = false;
  for (const auto& [parameter, id] : graph.gradients) {
    Value& value = graph.values[id];
    check(value.shape == graph.parameters[parameter].shape && value.dtype == options.wire_dtype(graph.parameters[parameter].dtype),
          "a gradient has its parameter's shape and the type that it is reduced in");
    if (value.kind != ValueKind::computed || value.parameter != kNone) continue;
    value.parameter = parameter;
    changed = true;
  }
  return changed;
}

}  // namespace zeroplan
