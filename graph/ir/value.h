#pragma once
// Values of a graph: SSA, by index, with static shapes.
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/host_tensor.h"
#include "base/shape.h"

namespace zeroplan {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;

enum class ValueKind : uint8_t {
  computed,   // output of a node
  input,      // one micro-batch of data, written by the run loop
  constant,   // `constant` holds it
  parameter,  // leaf of the training graph; `parameter` says which
  state,      // lives from program to program: shards, optimizer state, metrics
};

struct Value {
  std::string name;  // unique, printable; of the model where it has one
  DType dtype = DType::f32;
  Shape shape;
  ValueKind kind = ValueKind::computed;
  NodeId producer = kNone;    // kept by Graph::reindex()
  int32_t parameter = kNone;  // a parameter, its gathered copy, or its gradient
  int32_t unit = kNone;       // state that belongs to a unit, gathered copies, final gradients
  ValueId copy_of = kNone;    // a gathered copy: the leaf; a view of one: the view of the leaf, which no node computes any more
  HostTensor constant;
};

}  // namespace zeroplan
