#include "runtime/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/device_kind.h"
#include "base/error.h"
#include "kernels/cuda/context.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_local_communicator.h"

namespace zeroplan {
namespace {

std::unique_ptr<KernelContext> new_context(Stream& compute) {
  return std::make_unique<CudaContext>(static_cast<cudaStream_t>(compute.native()));
}

// Lets kernels and copies of each GPU reach the memory of the others.
void connect(int count) {
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      int reachable = 0;
      check_cuda(cudaDeviceCanAccessPeer(&reachable, a, b), "cudaDeviceCanAccessPeer");
      if (reachable == 0)
        throw Error(fmt::format(
            "GPU {} cannot reach the memory of GPU {}: ranks of one process need peer access; start one process per rank", a, b));
      check_cuda(cudaSetDevice(a), "cudaSetDevice");
      const cudaError_t status = cudaDeviceEnablePeerAccess(b, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
      else
        check_cuda(status, "cudaDeviceEnablePeerAccess");
    }
}

void require_alike(const std::vector<std::shared_ptr<Device>>& devices, int count) {
  std::string first;
  for (int i = 0; i < count; ++i) {
    const std::string name = devices[i]->properties().name, card = name.substr(name.find(' ') + 1);
    if (i == 0) first = card;
    if (card != first)
      throw Error(
          fmt::format("the GPUs differ: GPU 0 is {}, GPU {} is {}; all ranks must compute the same bits. Choose equal ones by "
                      "CUDA_VISIBLE_DEVICES",
                      first, i, card));
  }
}

}  // namespace

Backend make_cuda_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  if (plan.header.device != device_kind_name(DeviceKind::cuda))
    throw Error(
        fmt::format("the plan is for device {}: it counts other scratch memory; compile it with --device cuda", plan.header.device));
  const int n = plan.header.ranks, count = std::min(n, cuda_devices());
  std::vector<std::shared_ptr<Device>> devices;
  for (int r = 0; r < n; ++r) devices.push_back(r < count ? make_cuda_device(r) : devices[r - count]);
  require_alike(devices, count);
  connect(count);
  auto gather = make_cuda_local_communicators(devices, deadline), reduce = make_cuda_local_communicators(devices, deadline);
  Backend backend{.kernel_of = cuda_kernel, .new_context = new_context};
  for (int r = 0; r < n; ++r) backend.ranks.push_back({r, devices[r], std::move(gather[r]), std::move(reduce[r])});
  return backend;
}

}  // namespace zeroplan
