#pragma once
// The graph that all passes work on: SSA values and nodes by index, static shapes, nodes in execution order.
//
// One Graph holds every program of a plan. It starts with the forward nodes of the model in program micro_step; passes add the
// backward, clone the eval program, cut parameters into units and add the collectives. Parameters are leaf values until
// insert_all_gather replaces their uses by the outputs of gather_weights (or unit_view) nodes.
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir/node.h"
#include "graph/ir/unit.h"
#include "graph/ir/value.h"

namespace zeroplan {

// The loss as sum over weight; backward starts from the sum, and the update divides once: loss = fold of `sum` over the window / fold of
// `weight`.
struct Loss {
  ValueId sum = kNone;      // scalar
  ValueId weight = kNone;   // scalar; kNone: a final sum, divided by nothing
  std::string description;  // for reports
  ValueId scale = kNone;    // state f32 []: what backward is seeded with, and the update divides by; kNone: 1
};

// `to` is the new content of state `from` when `program` ends: in the next program it is called `from` again.
struct StateUpdate {
  Program program{};
  ValueId from = kNone;
  ValueId to = kNone;
};

// A batch normalization that works with the statistics of its batch: what the update folds into its running statistics.
struct BatchStatistics {
  ValueId mean = kNone, variance = kNone;                  // [C], of one micro-batch
  ValueId running_mean = kNone, running_variance = kNone;  // leaves [C]: parameters that are statistics
  double momentum = 0;                                     // that the running ones keep
  ValueId recorded = kNone;  // state f64 [V, 2 C]: mean and variance of each micro-batch; kNone before autodiff
};

struct Graph {
  std::deque<Value> values;  // references to them hold while others are added
  std::vector<Node> nodes;   // execution order within each program; programs in enum order
  std::vector<Parameter> parameters;
  std::vector<Unit> units;
  std::vector<ValueId> inputs;             // ValueKind::input
  std::map<std::string, ValueId> outputs;  // named outputs of the model that are still wanted
  Loss loss;
  Loss eval_loss;                        // of eval_step, where it exists
  std::map<int32_t, ValueId> gradients;  // parameter -> its final gradient (micro_step)
  std::vector<StateUpdate> state_updates;
  std::vector<BatchStatistics> statistics;
  std::vector<SourceNode> source;  // filled by snapshot_source

  ValueId add_value(Value value);  // makes the name unique
  NodeId add_node(Node node);      // appends; sets producer of its outputs
  // Recomputes every producer and removes nothing; call after nodes were reordered, inserted or erased.
  void reindex();
  const Value& value(ValueId id) const { return values[id]; }
  Value& value(ValueId id) { return values[id]; }
  // Nodes that read the value, in order; recomputed on each call of users().
  std::vector<std::vector<NodeId>> users() const;
  ValueId find(const std::string& name) const;       // kNone if absent
  void rename(ValueId id, const std::string& name);  // makes the name unique; the only way to change one

 private:
  std::string unique_name(const std::string& wanted);
  bool is_taken(const std::string& name) const;
  std::unordered_map<std::string, ValueId> names_;  // may hold stale entries, misses none of values[0 … named_)
  size_t named_ = 0;
};

}  // namespace zeroplan
