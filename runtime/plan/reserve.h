#pragma once
// Memory of a run outside the plan's arenas.
#include <cstdint>

#include "runtime/plan/plan.h"

namespace zeroplan {

// Parts of what a process takes at most beyond its arenas, in bytes. Not in it: the files of --data and --tokens, whose mapped pages the
// system takes back; --export, which holds the model file twice, and one parameter, after the last step; constants that fold away while
// the plan is compiled, before its arenas exist.
struct Reserve {
  // Of the process, shared by its ranks.
  int64_t code = 0;  // pages of the program and its libraries that a run touches: RssFile of /proc/PID/status, measured
  int64_t heap = 0;  // ONNX operator registry, measured; graph, plan and verifier, measured per step; constants, as often as copied
  // Of each rank.
  int64_t threads = 0;   // touched stack and heap arena of each of its threads: main, one per stream, --threads; measured
  int64_t steps = 0;     // PreparedStep with its event, measured; its views, their size
  int64_t messages = 0;  // of a rank that is a process: the communicators' buffers, their size; MPI's own memory, measured
  int64_t device = 0;    // on its GPU: receive buffers of reductions, where ranks have a GPU each; their size
  int64_t packing = 0;   // blocks of a matrix product that each thread packs: block sizes of oneDNN and OpenBLAS

  int64_t per_rank(int ranks_of_a_process) const;
};

// Whether the ranks are threads of one process, or each is a process of its own under MPI.
enum class Hosting : uint8_t { threads, processes };

Reserve find_reserve(const Plan& plan, Hosting hosting);

// What a communicator between processes keeps, for each rank, of what that sends to a reduction: the largest part that one rank sends to
// another on this stream, or a piece of it where all would take more than 8 MiB; on GPUs more than 64 MiB.
int64_t message_slot_bytes(const Plan& plan, StreamKind stream);
// What a communicator between GPUs keeps: such a slot for each rank and, where reductions are fast, a rank's whole part at least.
int64_t receive_bytes(const Plan& plan, StreamKind stream);

// Sum over the reduce_scatters of an optimizer step to which all ranks contribute: what one rank sends to each other.
int64_t reduced_part_bytes(const Plan& plan);

}  // namespace zeroplan
