#pragma once
// Whether the GPUs at hand can carry the ranks of a plan. Only runtime/cuda includes this.
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace zeroplan {

// "NVIDIA H200, sm_90"
std::string card_of(const Device& device);

// Lets kernels and copies of each of the first `count` GPUs reach the memory of the others. Throws Error where one cannot.
void connect_gpus(int count);
// Throws Error where the cards are not all the same.
void require_alike(const std::vector<std::string>& cards);
// Throws Error where the free memory of GPU number `index` does not hold so many ranks of the plan: what each needs, by category.
// `receive_bytes`: of each rank.
void require_memory(const Plan& plan, Device& device, int index, int ranks, int64_t receive_bytes);

// The GPU that a process of a job has chosen.
struct GpuOfRank {
  std::string machine, id, card;
  int seen = 0;  // GPUs that the process sees
};
std::string packed(const GpuOfRank& gpu);
GpuOfRank unpacked(const std::string& text);

// Of a process that sees `seen` of them: the one of its number, or the only one, as launchers may give each process its own.
int gpu_of(int local_rank, int seen);
// What is wrong with the choices of all ranks: two have the same one, or cards differ; empty: nothing.
std::string trouble_of(const std::vector<GpuOfRank>& by_rank);

}  // namespace zeroplan
