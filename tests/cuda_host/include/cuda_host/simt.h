// The execution model seen from inside a kernel: who am I, and how do I wait.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <source_location>

// Plain variables, as CUDA declares them, so that `auto i = threadIdx;` works.
// They live per OS thread and the scheduler rewrites them at every fiber switch.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;

namespace cuda_host::simt {

using Site = std::source_location;

enum class BlockOp : std::uint8_t { Sync, Count, And, Or };
enum class WarpOp : std::uint8_t {
  Sync,
  Shuffle,
  Ballot,
  Any,
  All,
  MatchAny,
  AddSigned,
  MinSigned,
  MaxSigned,
  MinUnsigned,
  MaxUnsigned,
  And,
  Or,
  Xor
};

// Waits for every thread of the block; returns the combined predicate.
int block_barrier(BlockOp op, int predicate, const char* name, const Site& site);

// Waits for every lane of `mask`, then exchanges `value` as `op` says.
// `source_lane` matters for Shuffle only.
std::uint64_t warp_exchange(WarpOp op, unsigned mask, std::uint64_t value, unsigned source_lane, const char* name, const Site& site);

// Lets other threads of the block run; also the place where a spin is timed out.
void yield();

// Cheap hook in every atomic: a thread that spins must not starve the others.
void spin_tick();

// Ends the kernel with a sticky launch failure.
[[noreturn]] void fault(const char* message, const Site& site);

void* dynamic_shared();
unsigned lane_id();
unsigned thread_rank();

}  // namespace cuda_host::simt
