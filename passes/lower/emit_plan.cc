#include <algorithm>
#include <map>

#include "base/checked.h"
#include "passes/lower/assign_streams.h"
#include "passes/lower/cost_model.h"
#include "passes/lower/emit_steps.h"
#include "passes/lower/plan_header.h"
#include "passes/lower/plan_memory.h"
#include "passes/lower/plan_tables.h"
#include "passes/lower/storage_groups.h"
#include "passes/pass.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

class Emitter {
 public:
  Emitter(const Graph& graph, const CompileOptions& options) : graph_(graph), options_(options), storage_(group_storage(graph, options)) {}

  Plan run() {
    plan_.header = plan_header(options_, graph_.loss, max_live_units(graph_, options_));
    place_lasting(Arena::state);
    place_lasting(Arena::staging);
    place_transient({Program::micro_step, Program::update});
    for (const Program alone : {Program::load, Program::eval_step, Program::eval_end, Program::save}) place_transient({alone});
    PlanTables tables(graph_, storage_, plan_);
    add_units(tables);
    add_leaves(tables);
    add_programs(tables);
    add_roles(tables);
    add_statistics(tables);
    return std::move(plan_);
  }

 private:
  void place_lasting(Arena arena) {
    int64_t& bytes = plan_.arena_bytes[static_cast<int>(arena)];
    for (StorageGroup& group : storage_.groups) {
      if (group.arena != arena) continue;
      group.offset = bytes;
      bytes = round_up(checked_add(bytes, std::max<int64_t>(group.bytes, 1)), kArenaAlignment);  // each at an address of its own
    }
  }

  // The programs of one timeline have the whole transient arena to themselves.
  void place_transient(const std::vector<Program>& programs) {
    std::vector<StorageGroup*> groups;
    std::vector<MemoryRequest> requests;
    for (StorageGroup& group : storage_.groups) {
      const bool here = std::find(programs.begin(), programs.end(), group.program) != programs.end();
      if (group.arena != Arena::transient || !here || group.bytes == 0 || group.first < 0) continue;
      groups.push_back(&group);
      requests.push_back({group.bytes, group.first, group.last});
    }
    const MemoryPlan memory = plan_memory(requests);
    for (size_t i = 0; i < groups.size(); ++i) groups[i]->offset = memory.offsets[i];
    int64_t& bytes = plan_.arena_bytes[static_cast<int>(Arena::transient)];
    bytes = std::max(bytes, memory.bytes);
    for (const Program program : programs) plan_.transient_lower_bound[static_cast<int>(program)] = bound_within(program, requests);
  }

  // Of the part of the timeline that is the program's.
  int64_t bound_within(Program program, const std::vector<MemoryRequest>& requests) const {
    const int begin = storage_.position(program, 0), end = begin + storage_.steps[static_cast<int>(program)];
    std::vector<MemoryRequest> within;
    for (const MemoryRequest& r : requests)
      if (r.first < end && r.last >= begin)
        within.push_back({r.bytes, std::max(r.first, begin) - begin, std::min(r.last, end - 1) - begin});
    return lower_bound(within);
  }

  void add_units(PlanTables& tables) {
    std::map<int64_t, int32_t> slot_classes;  // bytes of a gather buffer -> class
    for (const Parameter& parameter : graph_.parameters) plan_.parameters.push_back({parameter, kNone, 0});
    for (size_t i = 0; i < graph_.units.size(); ++i) {
      const Unit& unit = graph_.units[i];
      PlanUnit planned{unit};
      planned.weights_tensor = tables.tensor(unit.weights_state);
      if (unit.gradient_shard != kNone) planned.gradient_tensor = tables.tensor(unit.gradient_shard);
      for (ValueId moment : unit.moments) planned.moment_tensors.push_back(tables.tensor(moment));
      const int64_t bytes = unit.padded_elements * dtype_bytes(unit.dtype);
      if (unit.weights == Placement::sharded)
        planned.slot_class = slot_classes.emplace(bytes, static_cast<int32_t>(slot_classes.size())).first->second;
      for (const UnitParameter& member : unit.parameters) {
        plan_.parameters[member.parameter].unit = static_cast<int32_t>(i);
        plan_.parameters[member.parameter].offset = member.offset;
      }
      plan_.units.push_back(std::move(planned));
    }
  }

  void add_leaves(PlanTables& tables) {
    for (ValueId id : graph_.inputs) {
      PlanInput input;
      input.name = graph_.values[id].name;
      input.dtype = graph_.values[id].dtype;
      input.shape = graph_.values[id].shape;
      input.tensor = tables.tensor(id);
      plan_.inputs.push_back(std::move(input));
    }
    for (const Node& node : graph_.nodes)
      if (node.op == OpKind::record_output) plan_.outputs.push_back({node.origin, tables.tensor(node.inputs[1])});
    for (const StorageGroup& group : storage_.groups) {
      if (group.kind != TensorKind::constant) continue;
      const HostTensor& constant = graph_.values[group.owner].constant;
      std::string bytes(reinterpret_cast<const char*>(constant.data()), static_cast<size_t>(constant.bytes()));
      plan_.constants.push_back({tables.tensor(group.owner), std::move(bytes)});
    }
  }

  void add_programs(PlanTables& tables) {
    StepEmitter emitter(graph_, storage_, tables, options_.ranks);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const Program program = graph_.nodes[id].program;
      if (plan_.programs.empty() || plan_.programs.back().program != program) plan_.programs.push_back({program, {}, {}, {}, 0});
      if (storage_.step_of[id] != kNone) plan_.programs.back().steps.push_back(emitter.emit(id));
    }
    for (PlanProgram& program : plan_.programs) {
      add_borders(tables, program);
      assign_waits(plan_, program);
      program.predicted_us = predict_program_us(program);
    }
  }

  // Constants are there from the start, other state from the end of load on, carried gradients from micro_step to update.
  void add_borders(PlanTables& tables, PlanProgram& program) {
    std::map<ValueId, ValueId> changed;
    for (const StateUpdate& update : graph_.state_updates)
      if (update.program == program.program) changed[update.from] = update.to;
    for (const StorageGroup& group : storage_.groups) {
      const bool carried = group.arena == Arena::transient && group.owner != kNone;
      if (group.arena != Arena::state && !carried) continue;
      const Operand entry = tables.operand(group.owner);
      const bool enters =
          carried ? program.program == Program::update : group.kind == TensorKind::constant || program.program != Program::load;
      if (enters) program.entry.push_back(entry);
      if (carried && program.program != Program::micro_step) continue;
      const auto after = changed.find(group.owner);
      program.exit.push_back({entry.tensor, after == changed.end() ? entry.value : tables.value(after->second)});
    }
  }

  // The tensor that operand `input` of the first node with this op uses, kNone without such a node or operand.
  int32_t role(PlanTables& tables, Program program, OpKind op, int input) const {
    for (const Node& node : graph_.nodes)
      if (node.program == program && node.op == op)
        return input < static_cast<int>(node.inputs.size()) ? tables.tensor(node.inputs[input]) : kNone;
    return kNone;
  }

  void add_roles(PlanTables& tables) {
    plan_.roles.metrics = role(tables, Program::update, OpKind::fold_metrics, 0);
    plan_.roles.report = role(tables, Program::update, OpKind::fold_metrics, 1);
    plan_.roles.norm_limbs = role(tables, Program::update, OpKind::clip_factor, 0);
    plan_.roles.loss_scale = role(tables, Program::update, OpKind::clip_factor, 2);
    plan_.roles.overflows = role(tables, Program::update, OpKind::clip_factor, 3);
    plan_.roles.eval_metrics = role(tables, Program::eval_end, OpKind::fold_metrics, 0);
    plan_.roles.eval_report = role(tables, Program::eval_end, OpKind::fold_metrics, 1);
  }

  void add_statistics(PlanTables& tables) {
    for (const BatchStatistics& s : graph_.statistics)
      if (s.recorded != kNone)
        plan_.statistics.push_back(
            {tables.tensor(s.recorded), graph_.values[s.running_mean].parameter, graph_.values[s.running_variance].parameter, s.momentum});
  }

  const Graph& graph_;
  const CompileOptions& options_;
  StorageGroups storage_;
  Plan plan_;
};

}  // namespace

Plan emit_plan(const Graph& graph, const CompileOptions& options) { return Emitter(graph, options).run(); }

}  // namespace zeroplan
