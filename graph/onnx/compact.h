#pragma once
// The last steps of an import: drop what the loss does not need, check gradients, find limits of index inputs.
#include <map>
#include <string>
#include <vector>

#include "graph/onnx/importer.h"

namespace zeroplan {

// Keeps what the loss and the outputs depend on; computed values get the names of the model. Values, inputs, parameters, loss and outputs
// of `graph` are renumbered. Returns old parameter -> new, -1 for dropped ones.
std::vector<int> compact(Graph& graph, const std::map<ValueId, std::string>& names);
// Parameters without a gradient path to the loss become frozen (named in `report`); ops without gradient on a path are returned as
// problems.
std::vector<std::string> check_gradients(Graph& graph, std::vector<std::string>& report);
// Labels of a built-in loss.
struct LabelRange {
  std::string input;
  int64_t classes = 0;  // 0: there are none
  int64_t ignored = 0;
};
// Fills limit, label and ignored of the integer inputs that index tables or classes.
void find_limits(const Graph& graph, const LabelRange& labels, std::vector<ImportedInput>& inputs);

}  // namespace zeroplan
