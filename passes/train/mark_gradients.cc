#include "base/error.h"
#include "passes/passes.h"

namespace zeroplan {

bool mark_gradients(Graph& graph, const CompileOptions&) {
  bool changed = false;
  for (const auto& [parameter, id] : graph.gradients) {
    Value& value = graph.values[id];
    check(value.shape == graph.parameters[parameter].shape && value.dtype == graph.parameters[parameter].dtype,
          "a gradient has its parameter's type");
    if (value.kind != ValueKind::computed || value.parameter != kNone) continue;
    value.parameter = parameter;
    changed = true;
  }
  return changed;
}

}  // namespace zeroplan
