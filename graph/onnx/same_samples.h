#pragma once
// Does a value that depends on no sample treat all places in the batch alike?
#include <cstdint>
#include <map>
#include <tuple>

#include "graph/ir/graph.h"

namespace zeroplan {

// The axis of `to` that counts what lies `inner` elements apart, `samples` times in turn, and the stride along it; axis -1: none does.
struct AxisPart {
  int axis = -1;
  int64_t stride = 1;
};
AxisPart find_part(const Shape& to, int64_t inner, int64_t samples);
// Elements between neighbours of the part.
int64_t inner_elements(const Shape& shape, int axis, int64_t stride);

// Keeps what it found out; `graph` must outlive it and stay as it is.
class SameSamples {
 public:
  SameSamples(const Graph& graph, int64_t samples) : graph_(graph), samples_(samples) {}
  // Is the value the same for every i / stride % samples along `axis`? No, where that cannot be told.
  bool holds(ValueId id, int axis, int64_t stride);

 private:
  bool find_out(ValueId id, int axis, int64_t stride);
  bool look_at(ValueId id, int axis, int64_t stride);
  bool constant_holds(const HostTensor& tensor, int axis, int64_t stride) const;
  bool node_holds(const Node& node, ValueId id, int axis, int64_t stride);
  bool aligned_hold(const Node& node, int rank, int axis, int64_t stride);
  bool joined_hold(const Node& node, int rank, int axis, int64_t stride);
  bool gathered_holds(const Node& node, int axis, int64_t stride);
  bool product_holds(const Node& node, int rank, int axis, int64_t stride);
  const Shape& shape(ValueId id) const { return graph_.values[id].shape; }
  int rank(ValueId id) const { return static_cast<int>(shape(id).size()); }

  const Graph& graph_;
  const int64_t samples_;
  std::map<std::tuple<ValueId, int, int64_t>, bool> known_;
  int depth_ = 0;  // of values that are being looked at
};

}  // namespace zeroplan
