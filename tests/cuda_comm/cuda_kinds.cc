// On the stand-in of CUDA: its devices' streams are threads, here with random delays.
#include "comm_kind.h"
#include "cuda_host/control.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_local_communicator.h"
#include "runtime/cuda/nccl_communicator.h"

namespace zeroplan::test {
namespace {

Devices gpus(int ranks, int count) {
  cuda_host::settings().device_count = count;
  cuda_host::settings().max_delay_us = 20;
  Devices devices;
  for (int r = 0; r < ranks; ++r) devices.push_back(r < count ? make_cuda_device(r) : devices[r - count]);
  return devices;
}

Devices one_gpu(int ranks) { return gpus(ranks, 1); }
Devices a_gpu_each(int ranks) { return gpus(ranks, ranks); }

std::vector<std::unique_ptr<Communicator>> make_nccl(const Devices& devices, std::chrono::milliseconds deadline, ReduceMode mode) {
  NcclSetup setup{.size = static_cast<int>(devices.size()),
                  .devices = devices,
                  .id = new_nccl_id(),
                  .deadline = deadline,
                  .receive_bytes = 1 << 16,  // larger reductions go in pieces
                  .mode = mode};
  for (int r = 0; r < setup.size; ++r) setup.ranks.push_back(r);
  return make_nccl_communicators(setup);
}

std::vector<std::unique_ptr<Communicator>> make_ordered(const Devices& devices, std::chrono::milliseconds deadline) {
  return make_nccl(devices, deadline, ReduceMode::ordered);
}
std::vector<std::unique_ptr<Communicator>> make_fast(const Devices& devices, std::chrono::milliseconds deadline) {
  return make_nccl(devices, deadline, ReduceMode::fast);
}

}  // namespace

const std::vector<CommKind>& comm_kinds() {
  static const std::vector<CommKind> kinds{{"OneGpu", one_gpu, make_cuda_local_communicators, 500},
                                           {"Gpus", a_gpu_each, make_cuda_local_communicators, 500},
                                           {"Nccl", a_gpu_each, make_ordered, 500},
                                           {"NcclFast", a_gpu_each, make_fast, 500, false}};
  return kinds;
}

}  // namespace zeroplan::test
