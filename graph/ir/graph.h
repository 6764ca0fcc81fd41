#pragma once
// The graph that all passes work on: SSA values and nodes by index, static shapes, nodes in execution order.
//
// One Graph holds every program of a plan. It starts with the forward nodes of the model in program micro_step; passes add the
// backward, clone the eval program, cut parameters into units and add the collectives. Parameters are leaf values until
// insert_all_gather replaces their uses by the outputs of all_gather (or unit_view) nodes.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/host_tensor.h"
#include "base/shape.h"
#include "graph/ir/attributes.h"

namespace zeroplan {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;

enum class OpKind : uint16_t {
#define ZP_OP(name) name,
#include "graph/ops/ops.def"
#undef ZP_OP
};

enum class ValueKind : uint8_t {
  computed,   // output of a node
  input,      // one micro-batch of data, written by the run loop
  constant,   // `constant` holds it
  parameter,  // leaf of the training graph; `parameter` says which
  state,      // lives from program to program: shards, optimizer state, metrics
};

// load once; then micro_step (once per round), update, repeated; eval_step/eval_end in between; save at the end.
enum class Program : uint8_t { load, micro_step, update, eval_step, eval_end, save };
inline constexpr int kPrograms = 6;

enum class Placement : uint8_t { replicated, sharded };

struct Value {
  std::string name;  // unique, printable; of the model where it has one
  DType dtype = DType::f32;
  Shape shape;
  ValueKind kind = ValueKind::computed;
  NodeId producer = kNone;       // kept by Graph::reindex()
  int32_t parameter = kNone;     // a parameter, its gathered copy, or its gradient
  int32_t unit = kNone;          // state that belongs to a unit, gathered copies, final gradients
  HostTensor constant;
};

struct Node {
  OpKind op{};
  std::vector<ValueId> inputs;   // kNone: optional input left out
  std::vector<ValueId> outputs;
  Attributes attributes;
  Program program = Program::micro_step;
  int32_t unit = kNone;          // collectives, free, update
  bool backward = false;
  std::string origin;            // node of the model that it came from, for messages
  std::string reason;            // why a pass put it here (gathers: what bound the prefetch)
};

// Where the bytes of a weight lie in the model: a contiguous little-endian run of `elements` values of `dtype`.
struct WeightSource {
  std::string initializer;       // name in the model
  std::string file;              // relative to the model's folder; empty = the model file itself
  int64_t offset = 0;
  int64_t bytes = 0;
  DType dtype = DType::f32;      // as stored
};

// Another initializer of the model that shows the same parameter: exported from it.
struct ParameterAlias {
  std::string initializer;
  bool transposed = false;       // 2-d: the alias holds the transpose of the parameter
};

struct Parameter {
  std::string name;              // root name: what the exporter's original model called it, where known
  DType dtype = DType::f32;
  Shape shape;                   // layout of the source
  bool trainable = true;
  WeightSource source;
  std::vector<ParameterAlias> aliases;   // besides source.initializer
  // Consumers (model node name, input index) to rewire on export, where an initializer that an exporter merged was split.
  std::vector<std::pair<std::string, int>> split_uses;
  std::string role_reason;
};

// Parameters that are gathered, freed and reduced together (design 2.2).
struct UnitParameter {
  int32_t parameter = kNone;
  int64_t offset = 0;            // elements, multiple of 64
  int64_t elements = 0;
};

struct Unit {
  std::string name;
  std::vector<UnitParameter> parameters;
  DType dtype = DType::f32;
  int64_t padded_elements = 0;   // shard_elements × ranks
  int64_t shard_elements = 0;    // multiple of 64
  bool trainable = true;
  Placement weights = Placement::sharded;
  Placement gradients = Placement::sharded;
  Placement optimizer = Placement::sharded;
  // State values, kNone where the unit has none. moments: by optimizer (momentum; or m, v).
  ValueId weights_state = kNone;
  ValueId gradient_shard = kNone;
  ValueId gradient_full = kNone;           // gradients replicated
  std::vector<ValueId> moments;
};

// The loss as gradient-of-sum over weight (design 2.7): loss = fold of `sum` over the window / fold of `weight`.
struct Loss {
  ValueId sum = kNone;           // scalar
  ValueId weight = kNone;        // scalar; kNone: a final sum, divided by nothing
  std::string description;       // for reports
};

// `to` is the new content of state `from` when `program` ends: in the next program it is called `from` again.
struct StateUpdate {
  Program program{};
  ValueId from = kNone;
  ValueId to = kNone;
};

// One node of the training graph before sharding, kept for the verifier.
struct SourceNode {
  OpKind op{};
  std::vector<ValueId> inputs, outputs;
  Attributes attributes;
  Program program{};
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;                       // execution order within each program; programs in enum order
  std::vector<Parameter> parameters;
  std::vector<Unit> units;
  std::vector<ValueId> inputs;                   // ValueKind::input
  std::map<std::string, ValueId> outputs;        // named outputs of the model that are still wanted
  Loss loss;
  Loss eval_loss;                                // of eval_step, where it exists
  std::map<int32_t, ValueId> gradients;          // parameter -> its final gradient (micro_step)
  std::vector<StateUpdate> state_updates;
  std::vector<SourceNode> source;                // filled by snapshot_source

  ValueId add_value(Value value);                // makes the name unique
  NodeId add_node(Node node);                    // appends; sets producer of its outputs
  // Recomputes every producer and removes nothing; call after nodes were reordered, inserted or erased.
  void reindex();
  const Value& value(ValueId id) const { return values[id]; }
  Value& value(ValueId id) { return values[id]; }
  // Nodes that read the value, in order; recomputed on each call of users().
  std::vector<std::vector<NodeId>> users() const;
  ValueId find(const std::string& name) const;   // kNone if absent
  void rename(ValueId id, const std::string& name);  // makes the name unique; the only way to change one

 private:
  std::string unique_name(const std::string& wanted);
  bool is_taken(const std::string& name) const;
  std::unordered_map<std::string, ValueId> names_;  // may hold stale entries, misses none of values[0 … named_)
  size_t named_ = 0;
};

std::string_view program_name(Program program);
// Throws std::logic_error naming the node unless: ids in range, one producer per value, operands defined before use within the
// program, shapes and types equal to what the op's infer gives.
void verify_graph(const Graph& graph);
uint64_t graph_hash(const Graph& graph);         // of the printed form

}  // namespace zeroplan
