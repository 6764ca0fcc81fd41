#pragma once
// Which values share bytes (docs/architecture.md, storage groups) and how long those bytes are needed.
#include <array>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/compile_options.h"
#include "passes/lower/layouts.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// One stretch of an arena: a slot, a reduce buffer, a value with its in-place successors, a state, an input.
struct StorageGroup {
  TensorKind kind = TensorKind::activation;
  Arena arena = Arena::transient;
  Program program = Program::micro_step;  // transient: the first program in which it lives
  int64_t bytes = 0;
  // Transient: positions on the program's timeline (StorageGroups::position), -1 while untouched.
  int first = -1, last = -1;
  int32_t unit = kNone;
  DType dtype = DType::f32;  // of a slot or reduce buffer
  ValueId owner = kNone;     // state, constant or input that it is for
  int64_t offset = 0;        // in the arena, once planned
};

struct Place {
  int32_t group = kNone;
  int64_t offset = 0;  // bytes from the group's start
};

struct StorageGroups {
  std::vector<Layout> layouts;         // by value
  std::vector<int> step_of;            // by node: index among the steps of its program, kNone for views
  std::array<int, kPrograms> steps{};  // by program
  std::vector<StorageGroup> groups;
  std::vector<Place> places;                                       // by value that is a root
  std::vector<std::vector<std::pair<int32_t, int32_t>>> in_place;  // by node: (output, input)
  std::vector<int32_t> buffer_of;     // by node: slot of a gather_weights or free_unit, buffer of a reduce_scatter or export_unit
  std::vector<int32_t> workspace_of;  // by node

  // A program has a timeline of its own; but update's steps come after those of micro_step: carried gradients live in both.
  int position(Program program, int step) const {
    return step + (program == Program::update ? steps[static_cast<int>(Program::micro_step)] : 0);
  }
};

StorageGroups group_storage(const Graph& graph, const CompileOptions& options);

}  // namespace zeroplan
