#pragma once
// Parameters of a model, where their bytes come from, and the shard units that they are cut into.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/stored_type.h"
#include "graph/ir/value.h"

namespace zeroplan {

enum class Placement : uint8_t { replicated, sharded };

// Where the elements of a tensor lie in the model: one contiguous, little-endian run of `type`.
struct StoredRun {
  std::string initializer;  // name in the model
  std::string file;         // relative to the model's folder; empty = the model file itself
  int64_t offset = 0;
  int64_t bytes = 0;
  StoredType type = StoredType::f32;
  bool varints = false;  // each element as a number of protobuf instead, of one to ten bytes
};

// Integers that stand for (integer - zero point) · scale, as in DequantizeLinear. Element [o, k, i] of the weight, seen as [outer, extent,
// inner], has scale and zero point number k, or [o, k / block, i] where there are blocks.
struct Quantization {
  StoredRun scale, zero_point;  // zero_point.bytes 0: there is none
  int64_t count = 1;            // of scales; 1: one for all elements
  int64_t extent = 1, inner = 1;
  int64_t block = 0;  // 0: none
};

// A weight in the form that it is stored in, which training reads it from and an export writes it back to.
struct WeightSource : StoredRun {
  std::optional<Quantization> quantization;
};

// Another initializer of the model that shows the same parameter: exported from it.
struct ParameterAlias {
  std::string initializer;
  bool transposed = false;  // 2-d: the alias holds the transpose of the parameter
};

struct Parameter {
  std::string name;          // root name: what the exporter's original model called it, where known
  DType dtype = DType::f32;  // in the graph; what is kept and exported is of wide_dtype(dtype)
  Shape shape;               // layout of the source
  bool trainable = true;
  bool statistics = false;  // running statistics of a batch normalization: the update changes them, the same on all ranks; not trainable
  WeightSource source;
  std::vector<ParameterAlias> aliases;  // besides source.initializer
  // Consumers (model node name, input index) to rewire on export, where an initializer that an exporter merged was split.
  std::vector<std::pair<std::string, int>> split_uses;
  std::string role_reason;
};

// Parameters that are gathered, freed and reduced together.
struct UnitParameter {
  int32_t parameter = kNone;
  int64_t offset = 0;  // elements, multiple of 64
  int64_t elements = 0;
};

// What graph and plan say alike of a unit: how its parameters lie in flat buffers, and what the ranks hold of these.
struct UnitLayout {
  std::string name;
  std::vector<UnitParameter> parameters;
  DType dtype = DType::f32;           // weights: what the model computes with, and what a gather moves
  DType gradient_dtype = DType::f32;  // accumulated gradient shards, moments, and the master where there is one
  DType reduce_dtype = DType::f32;    // gradients in the reduce buffer: what a reduction moves
  int64_t padded_elements = 0;        // shard_elements × ranks
  int64_t shard_elements = 0;         // multiple of 64
  bool trainable = true;
  Placement weights = Placement::sharded;
  Placement gradients = Placement::sharded;
  Placement optimizer = Placement::sharded;
};

// Trained in 16 bits: the update works on a master of gradient_dtype, which is the first of the moments, and rounds it into the weights.
inline bool has_master(const UnitLayout& unit) { return unit.trainable && is_half(unit.dtype); }

// Replicated gradients are reduced where they stay. With a replicated optimizer that place takes in the accumulated gradient too, and a
// reduce buffer of another type lies apart.
inline bool reduces_in_state(const UnitLayout& unit) {
  return unit.gradients == Placement::replicated && (unit.optimizer == Placement::sharded || unit.reduce_dtype == unit.gradient_dtype);
}

// The weights, or their master, told by the type of an operand.
struct WeightCopy {
  DType dtype = DType::f32;
  Placement placement = Placement::sharded;
};
inline WeightCopy weight_copy(const UnitLayout& unit, DType operand) {
  if (has_master(unit) && operand == unit.gradient_dtype) return {operand, unit.optimizer};
  return {unit.dtype, unit.weights};
}

struct Unit : UnitLayout {
  // State values, kNone where the unit has none. moments: the master, where there is one, then by optimizer (momentum; or m, v).
  ValueId weights_state = kNone;
  ValueId gradient_shard = kNone;
  ValueId gradient_full = kNone;  // gradients replicated
  // gradient_shard holds something only from the reduce_scatter in micro_step, of which a step has one, to its last use in update.
  bool carried = false;
  std::vector<ValueId> moments;
};

}  // namespace zeroplan
