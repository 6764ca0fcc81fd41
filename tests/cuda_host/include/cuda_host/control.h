// Test-side control of the emulated device: settings, faults, and clean-up.
// Host code under test never includes this; tests do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_host {

// The order in which the threads of a block run between two barriers.
enum class ThreadOrder { Ascending, Descending, Shuffled };

// Every field can also be set by an environment variable CUDA_HOST_<FIELD>
// (for example CUDA_HOST_SEED=7), read once at start.
// Change fields only while no stream has work.
struct Settings {
  int device_count = 1;
  std::size_t device_memory = std::size_t{1} << 30;  // bytes per device
  std::uint64_t seed = 1;                            // drives every shuffle and delay below
  bool shuffle_blocks = true;
  ThreadOrder thread_order = ThreadOrder::Shuffled;
  int block_workers = 1;              // OS threads sharing the blocks of one launch
  bool strict_barriers = true;        // an exited thread makes __syncthreads an error
  std::size_t fiber_stack = 0;        // bytes; 0 picks 64 KiB, or 256 KiB under a sanitizer
  unsigned max_delay_us = 0;          // random wait before every stream operation
  unsigned char fill = 0xFF;          // fresh device and dynamic shared memory (NaN for float)
  unsigned hang_timeout_ms = 30000;   // a synchronising call gives up after this
  unsigned block_timeout_ms = 10000;  // a block that spins on atomics gives up after this
  unsigned nccl_timeout_ms = 5000;    // a collective waits this long for its peers
  bool check_pointers = true;         // kernel pointer arguments must be device-reachable
  bool guard_memory = false;          // host access to device memory traps (needs pkeys)
  bool print_faults = true;
  int other_card = -1;             // this device has another name than the others
  bool peer_access = true;         // devices reach each other's memory
  int driver_version = 0;          // 0: that of the runtime
  int nccl_version = 0;            // 0: that of the headers
  int other_products = -1;         // this device's heuristic names another algorithm for products, which sums in another order
  bool own_products_only = false;  // a device makes products by the algorithm of its own heuristic alone
};

Settings& settings();

// Waits for all work, destroys streams and events, frees device and pinned
// memory, clears sticky errors and injected faults, restores default settings.
// Returns how many device and pinned allocations had not been freed.
std::size_t reset();

// Makes the nth coming call (1 = next) of `function` return `code`.
// Works for every emulated function, e.g. fail_call("ncclAllGather", 2, ncclSystemError).
void fail_call(const std::string& function, unsigned nth, int code);

// How often `function` has been called since the last reset.
unsigned call_count(const std::string& function);

// The text of the latest device-side fault (empty when there was none).
std::string last_fault();

std::size_t live_allocations();
std::size_t device_bytes_in_use(int device);

// True when guard_memory can work on this machine.
bool guard_supported();

}  // namespace cuda_host
