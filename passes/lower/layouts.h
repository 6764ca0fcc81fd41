#pragma once
// Where the bytes of views lie.
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

// A value as a strided window on its root, the value at the start of its chain of views (itself where it is no view).
struct Layout {
  ValueId root = kNone;
  Strides strides;       // elements
  int64_t offset = 0;    // elements from the root's first
  bool possible = true;  // false: the chain needs a copy
};

// Every value as the root of itself: contiguous, but for outputs that are seen through one transpose alone and whose kernel can write so
// that this transpose is contiguous.
std::vector<Layout> root_layouts(const Graph& graph);
// Layout of every value in one pass over the nodes. Values without producer and outputs of steps are roots; so are the outputs of
// unit_view.
std::vector<Layout> value_layouts(const Graph& graph);
// Output `output` of a view node, given its operand's layout.
Layout view_layout(const Graph& graph, const Node& node, int output, const Layout& input);

}  // namespace zeroplan
