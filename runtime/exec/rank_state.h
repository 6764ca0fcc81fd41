#pragma once
// One rank: arenas, streams, and the plan with every operand resolved to an address. Only runtime/exec includes this.
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "graph/ops/elementwise.h"
#include "kernels/kernel.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Of the last window. Sent between ranks as it is.
struct RankTimes {
  int64_t step_ns = 0, compute_ns = 0, exposed_ns = 0, data_ns = 0;
  int64_t high_water = 0;  // of the transient arena, check mode
};

class Core;
struct Rank;
struct Lane;
struct Segment;

// A step as the loop runs it. Never changes after preparation.
struct PreparedStep {
  const Step* step = nullptr;
  int index = 0;
  Program program{};
  Rank* rank = nullptr;
  Lane* lane = nullptr;
  std::vector<Event*> waits;
  Event* records = nullptr;
  // kernel, copy
  Kernel kernel = nullptr;
  std::vector<TensorView> inputs, outputs;
  UnitArgs unit;
  ElementwiseCode chain;  // of an elementwise step
  KernelArgs args;
  // collectives: what is read, what is written, and the count (bytes of a gather, elements of a reduction)
  void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;
  DType dtype{};
  Fold fold = Fold::onto;
  Segment* segment = nullptr;  // that begins here
};

// Steps of the compute stream that follow each other without a wait or a record inside: issued one by one in a program's first run, kept
// in the second, and issued as a whole from then on. Where ranks are idle they are left out like their steps.
struct Segment {
  int first = 0, last = 0;  // in the program
  std::unique_ptr<Recording> recording;
};

// How far a stream has come, in one word that any thread may read. Where kernels are not the host's own code, only collectives are noted.
inline constexpr uint32_t kIdle = 0;
inline uint32_t progress_of(Program program, int index) {
  return (static_cast<uint32_t>(program) + 1) << 24 | static_cast<uint32_t>(index);
}

// A stream and what its thread knows. Written by that thread alone.
struct Lane {
  std::unique_ptr<Stream> stream;
  Communicator* comm = nullptr;
  uint32_t* progress = nullptr;  // host memory: progress_of the step begun and not finished, or kIdle
  int64_t begin_ns = 0;
  int64_t compute_ns = 0;         // kernels
  std::vector<TraceEvent> trace;  // preallocated; the first `traced` are valid
  size_t traced = 0;
  int64_t trace_end = INT64_MAX;  // trace_place of the first event without room
};

// Where events belong in a run: the load, step 1, the evaluation after it, step 2, …
inline int64_t trace_place(int64_t train_step, Program program) {
  return 2 * train_step + (program == Program::eval_step || program == Program::eval_end ? 1 : 0);
}

// Memory of one arena, with a canary page behind it in check mode.
struct ArenaMemory {
  std::unique_ptr<DeviceMemory> memory;
  int64_t bytes = 0;
  std::byte* data() const { return static_cast<std::byte*>(memory->data()); }
};

struct Rank {
  Core* core = nullptr;
  int index = 0;  // among all ranks of the plan
  const Plan* plan = nullptr;
  Device* device = nullptr;
  bool host = true;  // DeviceProperties::host
  std::array<ArenaMemory, kArenas> arenas;
  std::vector<std::shared_ptr<void>> shared;         // arenas, with the communicators: ends before them
  std::unique_ptr<DeviceMemory> tables;              // what kernels read beside operands: RunScalars, then the extents of each unit
  std::unique_ptr<DeviceMemory> pinned;              // progress words, then where the device is not the host: inputs on their way
  std::vector<std::pair<int64_t, int64_t>> carried;  // bytes of the transient arena that live from micro_step to update, by address
  std::array<Lane, kStreams> lanes;
  std::array<std::vector<PreparedStep>, kPrograms> programs;
  std::array<bool, kPrograms> warm{};                    // the program has run
  std::array<std::vector<Segment>, kPrograms> segments;  // destroyed before streams and communicators
  std::vector<std::unique_ptr<Event>> events;
  std::vector<TensorView> inputs;  // by plan input
  // Where data is read to: the inputs themselves, or two places in pinned memory, one of which is on its way while the other is filled.
  std::array<std::vector<TensorView>, 2> host_inputs;
  int filling = 0;                         // that of host_inputs which is read to next
  std::unique_ptr<KernelContext> context;  // after the streams: it uses one
  std::vector<int64_t> positions;          // samples of a micro-batch that is not full, completed
  RunScalars scalars;                      // of this rank's micro-batch
  const PreparedStep* issuing = nullptr;
  int64_t exposed_ns = 0, data_ns = 0, step_ns = 0;
  int64_t high_water = 0;  // of the transient arena, check mode
  // Where other processes have ranks too: what all of them measured, by rank, and where the ranks send it.
  std::vector<RankTimes> all_times;
  std::unique_ptr<DeviceMemory> shared_times;

  Stream& compute() { return *lanes[static_cast<int>(StreamKind::compute)].stream; }
  const PreparedStep* active(const Lane& lane) const;  // nullptr: none
  std::byte* address(const PlanTensor& tensor) const;
  TensorView view(int32_t tensor) const;  // data == nullptr for kNone

  // The host's way to the device's bytes, while the compute stream does nothing else: through that stream, done on return.
  void read(const void* from, void* to, int64_t bytes);
  void write(void* to, const void* from, int64_t bytes);
  void zero(int32_t tensor);  // kNone: nothing
  void upload_scalars();      // `scalars`, before a program
  void upload_extents();      // Core::extents
};

// Allocates the arenas and resolves every step (prepare.cc).
void prepare_rank(Rank& rank, const RankBackend& own, const Backend& backend);

// Check modes (check_memory.cc, check_values.cc).
inline constexpr int64_t kCanaryBytes = 4096;
void fill_canaries(Rank& rank);
void check_canaries(Rank& rank);                                    // throws Error naming the arena
void fill_transient(Rank& rank, Program next);                      // all bytes that hold nothing when the program starts
int64_t touched_transient(Rank& rank);                              // bytes up to the highest one written since fill_transient
void check_outputs(const PreparedStep& step);                       // throws Error naming the first NaN or Inf
void check_input(const TensorView& view, const std::string& name);  // NaN alone; contiguous, of the host

}  // namespace zeroplan
