#pragma once
// Kernels: free functions over views. A kernel never allocates, never synchronises, never looks at another rank.
#include <cstdint>
#include <string_view>

#include "base/tensor_view.h"
#include "graph/ir/graph.h"

namespace zeroplan {

struct ElementwiseCode;

// Numbers that change from step to step; one plan serves a whole run.
struct RunScalars {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double momentum = 0;      // of sgd; the executor sets the plan's
  double clip = 0;          // largest global norm; 0: no clipping
  int64_t step = 0;         // from 1
  int64_t skipped = 0;      // steps before this one that updated nothing; the executor sets it
  int64_t micro_batch = 0;  // v; the executor sets it, in an update to the last
  uint64_t seed = 0;        // of random numbers, with step and micro_batch
};

// A parameter's extent in its unit, and what the update does to it.
struct UnitExtent {
  int64_t offset = 0;  // elements
  int64_t elements = 0;
  double decay = 1;  // 0: no weight decay
};

struct UnitArgs {
  const UnitExtent* parameters = nullptr;
  int count = 0;
  int64_t padded_elements = 0;
  int64_t first = 0;    // first element of the unit that operand 0 of the update covers (rank × shard, or 0 when whole)
  int64_t covered = 0;  // number of elements covered from there
};

// What a kernel found wrong with the contents of its operands on a device that cannot throw: the first one since it was taken.
struct KernelFault {
  enum Kind : int32_t { none, index_outside_table, label_outside_classes };
  int32_t kind = none;
  int32_t place = 0;                           // KernelArgs::place of the step
  int64_t value = 0, position = 0, limit = 0;  // as kernels/failures.h has them
};

// What the kernels of a device work with beside their operands, one per rank: the stream, handles of libraries. CUDA:
// kernels/cuda/context.h.
class KernelContext {
 public:
  virtual ~KernelContext() = default;
  // Kind none where there is none. The stream must be idle.
  virtual KernelFault take_fault() = 0;
};

struct KernelArgs {
  const TensorView* inputs = nullptr;  // data == nullptr: optional operand left out
  int input_count = 0;
  const TensorView* outputs = nullptr;
  int output_count = 0;
  void* workspace = nullptr;  // 128-byte aligned
  int64_t workspace_bytes = 0;
  const Attributes* attributes = nullptr;
  const ElementwiseCode* chain = nullptr;  // elementwise: its decoded program
  const UnitArgs* unit = nullptr;
  const RunScalars* scalars = nullptr;  // in the device's memory, as operands, workspace and unit->parameters are
  int threads = 1;
  KernelContext* context = nullptr;  // none on the CPU
  int place = 0;                     // of the step in its program, for faults
};

using Kernel = void (*)(const KernelArgs&);

// The CPU kernel of an op; nullptr for ops that have none (views, collectives, host).
Kernel cpu_kernel(OpKind op);
// Instruction set that the CPU kernels use on this machine: "avx512", "avx2" or "baseline".
const char* cpu_instruction_set();
// The kernel compiled for one of these sets, for tests; nullptr where this machine lacks the set. Throws Error on another name.
Kernel cpu_kernel(OpKind op, std::string_view instruction_set);
// Call once per process before the first kernel: keeps the libraries behind the kernels to the calling thread where they ignore `threads`.
void prepare_cpu_kernels();

}  // namespace zeroplan
