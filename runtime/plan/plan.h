#pragma once
// The plan: plain data, the same for all ranks. Everything the executor does is listed here; it never sees a Graph.
// The only rank-dependent quantity is rank × shard bytes, for tensors marked `per_rank`.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/device_kind.h"
#include "base/reduce_mode.h"
#include "graph/ir/graph.h"
#include "runtime/plan/step.h"

namespace zeroplan {

inline constexpr int kPlanFormat = 9;

// Operands and Plan::source name the same values: a gathered copy carries its parameter's, a view of one that of the view in the source.
struct PlanValue {
  std::string name;
  int32_t parameter = kNone;  // the value is this parameter; kNone for its gradient
};

struct PlanParameter {
  Parameter parameter;  // name, shape, source, aliases
  int32_t unit = kNone;
  int64_t offset = 0;  // elements in the unit
};

// Running statistics of a batch normalization, and where micro_step leaves those of its micro-batches.
struct PlanStatistics {
  int32_t recorded = kNone;                // tensor, state: f64 [V, 2 C]
  int32_t mean = kNone, variance = kNone;  // parameters
  double momentum = 0;                     // that the running ones keep
};

struct PlanUnit : UnitLayout {
  int32_t weights_tensor = kNone;       // state: shard or whole buffer
  int32_t gradient_tensor = kNone;      // shard: state (accumulator), or carried from micro_step to update
  std::vector<int32_t> moment_tensors;  // state: shard or whole; the first is the master, where the unit has one
  int32_t slot_class = kNone;           // size class of its gather buffers
};

struct PlanInput {
  std::string name;          // NAME.npy
  DType dtype = DType::f32;  // of the tensor; data of another width is converted where exact
  Shape shape;               // of one micro-batch
  int sample_axis = 0;       // -1: given whole
  int32_t tensor = kNone;
  int32_t value = kNone;  // that operands on the tensor, or views of it, name; kNone: the first reader says
  int64_t limit = -1;     // integer inputs used as labels or indices: values must lie in [-limit, limit) or be `ignored`
  bool label = false;     // labels: values in [0, limit) or `ignored`
  int64_t ignored = 0;
  bool has_ignored = false;
  bool mask = false;  // boolean [samples]: which of them count; filled by the run, not from data
};

// Forward plans: what eval_step leaves of an output of the model.
struct PlanOutput {
  std::string name;
  int32_t tensor = kNone;
  int sample_axis = -1;  // -1: made of all samples, or of none
  int type = 0;          // TensorProto.DataType that the model states; 0: none
};

struct PlanConstant {
  int32_t tensor = kNone;
  std::string bytes;
};

struct PlanHeader {
  int format = kPlanFormat;
  std::string tool_version;
  std::string model_path;    // as given at compile; relative to this process, or for `zeroplan run` to the plan's folder
  std::string model_digest;  // xxh128 of the model file, and the length and ends of each external tensor
  std::string digest;        // xxh128 of the plan without this field
  int ranks = 1;
  int64_t batch = 1, micro_batches = 1;  // samples per optimizer step; V
  int stage = 3;
  int threads = 1;               // per rank
  DType precision = DType::f32;  // of the model's values
  std::string optimizer;         // adamw | adam | sgd
  double momentum = 0;           // sgd
  int prefetch = 1;
  int max_live_units = 2;  // gathered units live at once, at most
  DeviceKind device = DeviceKind::cpu;
  ReduceMode reduce = ReduceMode::ordered;                   // fast: with device cuda alone
  std::string loss, cost_source;                             // descriptions
  std::vector<std::pair<std::string, std::string>> options;  // effective value of every compile option, by name
};

// Tensors that the run loop reads or that kernels of the training step share, kNone where absent.
struct PlanRoles {
  int32_t metrics = kNone;     // f64 [2V + 2]: loss sums, weights, stop flag, 0
  int32_t report = kNone;      // f64 [kReportFields], written by fold_metrics and clip_factor
  int32_t norm_limbs = kNone;  // i64 [norm_elements]
  int32_t loss_scale = kNone;  // f32 []
  int32_t overflows = kNone;   // i64 [overflow_elements]: what the last update found
  int32_t eval_metrics = kNone;
  int32_t eval_report = kNone;
};

struct Plan {
  PlanHeader header;
  std::vector<PlanTensor> tensors;
  std::vector<PlanValue> values;
  std::vector<PlanParameter> parameters;
  std::vector<PlanUnit> units;
  std::vector<PlanStatistics> statistics;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::vector<PlanConstant> constants;
  std::array<int64_t, kArenas> arena_bytes{};
  // Largest sum of live bytes of the transient arena over the steps of each program. A storage (rounded up to kArenaAlignment) lives from
  // the step that first writes into it to the last that reads any of it, in issue order, in-place successors included: slots from
  // all_gather to free, reduce buffers whole from the first contribution to the reduce_scatter, workspace during its step, carried
  // gradients from the reduce_scatter to the end of micro_step and from the start of update to their last use.
  std::array<int64_t, kPrograms> transient_lower_bound{};
  std::vector<PlanProgram> programs;  // by Program, those that exist
  PlanRoles roles;
  std::vector<SourceNode> source;                      // training graph: node operands index Plan::values
  std::vector<std::pair<int32_t, int32_t>> gradients;  // (parameter, value of its final gradient)
  std::vector<std::string> report_lines;               // import report: ties, splits, roles
};

// State that holds the unit's weights in this type: those that the model computes with, or their master.
inline int32_t unit_weights(const PlanUnit& unit, DType dtype) {
  const bool master = has_master(unit) && dtype == unit.gradient_dtype && !unit.moment_tensors.empty();
  return master ? unit.moment_tensors[0] : unit.weights_tensor;
}

const PlanProgram* find_program(const Plan& plan, Program program);
// An optimizer step runs micro_step once: no rank has a second micro-batch.
inline bool one_round(const Plan& plan) { return plan.header.micro_batches <= plan.header.ranks; }
// Gradient shards in the transient arena, in the order of the units: what the end of micro_step hands to update, which must follow at once.
std::vector<int32_t> carried_tensors(const Plan& plan);
inline int64_t samples_per_micro_batch(const Plan& plan) { return plan.header.batch / plan.header.micro_batches; }
// May a batch hold fewer samples than the header says? Their micro-batches are then completed by samples that do not count, or not run.
bool takes_part_batches(const Plan& plan);
// Bytes from the first to one past the last element of the tensor, from its offset.
int64_t tensor_span_bytes(const PlanTensor& tensor);

std::string serialize_plan(const Plan& plan);                        // deterministic
Plan parse_plan(const std::string& bytes, const std::string& name);  // throws Error naming `name` and the field; does not verify
void save_plan(const Plan& plan, const std::string& path);           // atomic: temporary file, then rename
Plan load_plan(const std::string& path);
std::string plan_digest(const Plan& plan);    // of everything but header.digest
std::string common_digest(const Plan& plan);  // and but header.model_path: of what all ranks must have alike

}  // namespace zeroplan
