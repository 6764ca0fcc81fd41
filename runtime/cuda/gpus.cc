#include "runtime/cuda/gpus.h"

#include <cuda_runtime_api.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>

#include "base/counted.h"
#include "base/error.h"
#include "base/split.h"
#include "kernels/cuda/errors.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/memory.h"

namespace zeroplan {

std::string card_of(const Device& device) {
  const std::string name = device.properties().name;
  return name.substr(name.find(' ') + 1);
}

void connect_gpus(int count) {
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      int reachable = 0;
      check_cuda(cudaDeviceCanAccessPeer(&reachable, a, b), "cudaDeviceCanAccessPeer");
      if (reachable == 0)
        throw Error(
            fmt::format("GPU {} cannot reach the memory of GPU {}, which ranks that share GPUs need; give each rank a GPU of its own, "
                        "or let all share one by CUDA_VISIBLE_DEVICES",
                        a, b));
      check_cuda(cudaSetDevice(a), "cudaSetDevice");
      const cudaError_t status = cudaDeviceEnablePeerAccess(b, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
      else
        check_cuda(status, "cudaDeviceEnablePeerAccess");
    }
}

void require_alike(const std::vector<std::string>& cards) {
  for (size_t i = 1; i < cards.size(); ++i)
    if (cards[i] != cards[0])
      throw Error(
          fmt::format("the GPUs differ: GPU 0 is {}, GPU {} is {}; all ranks must compute the same bits. Choose equal ones by "
                      "CUDA_VISIBLE_DEVICES",
                      cards[0], i, cards[i]));
}

void require_memory(const Plan& plan, Device& device, int index, int ranks, int64_t receive_bytes) {
  device.use();
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  int64_t each = receive_bytes;
  for (const int64_t bytes : plan.arena_bytes) each += bytes;
  if (each * ranks <= static_cast<int64_t>(free)) return;
  std::vector<std::string> parts;
  for (int a = 0; a < kArenas; ++a) {
    std::vector<std::string> rows;
    for (const MemoryRow& row : memory_rows(plan))
      if (row.arena == static_cast<Arena>(a) && row.bytes > 0) rows.push_back(fmt::format("{} {}", row.name, row.bytes));
    parts.push_back(fmt::format("{} {} ({})", arena_name(static_cast<Arena>(a)), plan.arena_bytes[a], fmt::join(rows, ", ")));
  }
  if (receive_bytes > 0) parts.push_back(fmt::format("receive buffers {}", receive_bytes));
  throw Error(fmt::format(
      "GPU {}, {}, is too small: {} on it {} {} bytes{}, and {} of its {} bytes are free. Of each rank: {}. Use a higher --stage, more "
      "--micro-batches, which makes each smaller, or more --ranks on more GPUs",
      index, card_of(device), counted(ranks, "rank"), ranks == 1 ? "needs" : "need", each * ranks,
      ranks == 1 ? "" : fmt::format(", {} each", each), free, total, fmt::join(parts, "; ")));
}

std::string packed(const GpuOfRank& gpu) { return fmt::format("{}\n{}\n{}\n{}", gpu.machine, gpu.id, gpu.card, gpu.seen); }

GpuOfRank unpacked(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  lines.resize(4);
  GpuOfRank gpu{lines[0], lines[1], lines[2], 0};
  std::from_chars(lines[3].data(), lines[3].data() + lines[3].size(), gpu.seen);
  return gpu;
}

int gpu_of(int local_rank, int seen) {
  if (local_rank < seen) return local_rank;
  if (seen == 1) return 0;
  throw Error(
      fmt::format("this is process {} of its machine, counted from 0, and sees {}: each rank that is a process needs a GPU of its "
                  "own. Start at most {} processes on a machine, or one, whose ranks are threads and share the GPUs (--ranks)",
                  local_rank, counted(seen, "GPU"), seen));
}

std::string trouble_of(const std::vector<GpuOfRank>& by_rank) {
  std::map<std::string, size_t> owners;  // by machine and GPU
  for (size_t r = 0; r < by_rank.size(); ++r) {
    const GpuOfRank& gpu = by_rank[r];
    const auto [owner, fresh] = owners.emplace(gpu.machine + '\n' + gpu.id, r);
    if (!fresh) {
      size_t here = 0;
      for (const GpuOfRank& other : by_rank) here += other.machine == gpu.machine;
      return fmt::format(
          "ranks {} and {} have the same GPU of {}, where {} run and see {}: each rank that is a process needs a GPU of its own. "
          "Start at most as many processes there, or one, whose ranks are threads and share the GPU (--ranks)",
          owner->second, r, gpu.machine, counted(static_cast<int64_t>(here), "rank"), counted(gpu.seen, "GPU"));
    }
    if (gpu.card != by_rank[0].card)
      return fmt::format(
          "the GPUs differ: rank 0 has {} in {}, rank {} has {} in {}; all ranks must compute the same bits. Start the job on "
          "machines with equal ones",
          by_rank[0].card, by_rank[0].machine, r, gpu.card, gpu.machine);
  }
  return "";
}

}  // namespace zeroplan
