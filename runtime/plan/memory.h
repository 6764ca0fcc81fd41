#pragma once
// What a plan's arenas are made of, and which bytes of the transient arena are live when. Needs a plan whose indices are in range; it may
// be wrong in every other way.
#include <array>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/reserve.h"

namespace zeroplan {

// One stretch of the transient arena from the step that first writes it to the last that needs it. In-place successors, views and the parts
// of a slot or reduce buffer belong to it. What is carried into the program lives from step 0, what is carried out of it to the last step.
struct LiveStorage {
  int32_t tensor = kNone;  // whole buffer, or what was written first
  TensorKind kind{};
  int64_t begin = 0, end = 0;  // bytes in the arena
  int first = 0, last = 0;     // steps, both included
  int64_t bytes() const { return end - begin; }
};

struct LiveBytes {
  std::vector<LiveStorage> storages;
  int64_t peak = 0;  // largest sum of live bytes, each storage rounded up to the arena's alignment: the lower bound
  int peak_step = -1;
  int32_t peak_tensor = kNone;  // the largest storage that is live there
};

LiveBytes live_bytes(const Plan& plan, const PlanProgram& program);

// Bytes that one rank spends. The rows of an arena add up to its size.
struct MemoryRow {
  std::string name;
  Arena arena{};
  int64_t bytes = 0;
};

std::vector<MemoryRow> memory_rows(const Plan& plan);
std::string memory_table(const Plan& plan, Hosting hosting = Hosting::threads);
// Lowest and one past the highest byte that the tensor covers on rank `rank`, in its arena; strides may be negative. rank < 0: on any rank.
std::pair<int64_t, int64_t> tensor_range(const Plan& plan, const PlanTensor& tensor, int rank = -1);

}  // namespace zeroplan
