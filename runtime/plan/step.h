#pragma once
// Steps of a plan and the memory that they work on.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace zeroplan {

inline constexpr int64_t kArenaAlignment = 128;  // bytes, of every storage in an arena

enum class Arena : uint8_t {
  state,      // shards, moments, gradient shards, constants, metrics: live from program to program
  transient,  // slots, reduce buffers, activations, workspace, carried gradients: placed by lifetime
  staging,    // one micro-batch of input data
};
inline constexpr int kArenas = 3;

enum class TensorKind : uint8_t {
  weights,
  gradients,  // carried: transient
  moments,
  metrics,
  constant,  // state
  slot,
  reduce_buffer,
  activation,
  workspace,  // transient
  input,      // staging
  output,     // state
  master,     // state: weights as the update keeps them, where the model computes with fewer bits
};

enum class StreamKind : uint8_t { compute, gather, reduce };
inline constexpr int kStreams = 3;

enum class StepKind : uint8_t { kernel, all_gather, reduce_scatter, all_reduce, free, copy, host };

struct PlanTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;  // elements
  TensorKind kind{};
  Arena arena{};
  int64_t offset = 0;     // bytes from the arena's start
  bool per_rank = false;  // the address is offset + rank × unit shard bytes: a rank's own part of a replicated buffer
  int32_t unit = kNone;
  std::string origin;  // parameter or node of the model
};

// A tensor and the SSA value that a step expects to find in it, or leaves there.
struct Operand {
  int32_t tensor = kNone;  // kNone: optional operand left out
  int32_t value = kNone;   // index into Plan::values
  bool operator==(const Operand&) const = default;
};

// Operands by kind:
//   kernel, copy     inputs and outputs in the order of the op; workspace where it asks for one
//   all_gather       gather_weights of sharded weights: input: the shard; outputs: the whole buffer first, then each parameter of the unit
//                    in unit order. Of replicated weights (stages 1, 2), in place: the input is the whole buffer's per_rank part.
//                    gather_gradient: the gradient shard → the whole buffer
//   reduce_scatter   inputs: the unit's gradient shard (accumulator), the whole buffer (value: what fill_padding made of it), then each
//                    parameter's gradient in unit order; output: the new gradient shard, in place. Where it is carried the accumulator is
//                    left out: the fold starts from +0
//   all_reduce       input and output: one tensor, in place, summed in rank order
//   free             inputs: the whole buffer; nothing may read it afterwards
//   host             load_unit: outputs the weights (shard or whole), zeroed moments and gradient shard unless that is carried;
//                    export_unit: inputs the whole buffer
struct Step {
  StepKind kind{};
  OpKind op{};
  StreamKind stream{};
  std::vector<int32_t> waits;  // indices of earlier steps of this program on other streams that must have finished
  bool records = false;        // some later step waits for this one
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  Operand workspace;
  std::vector<std::pair<int32_t, int32_t>> in_place;  // (output, input) pairs that share bytes
  Attributes attributes;
  int32_t unit = kNone;
  std::string origin;  // node of the model
  double predicted_us = 0;
  std::string reason;
};

struct PlanProgram {
  Program program{};
  std::vector<Step> steps;  // in issue order over all streams
  // State at the program's borders, one entry per state tensor: the value it holds before the first and after the last step. A value
  // that a later program reads under its entry name. Before load there are only constants; kNone: the bytes are undefined.
  // The exit of micro_step and the entry of update name the carried gradients too. Nothing else lives at a border.
  std::vector<Operand> entry;
  std::vector<Operand> exit;
  double predicted_us = 0;
};

}  // namespace zeroplan
