#include "runtime/cuda/cuda_backend.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/errors.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_local_communicator.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/nccl_communicator.h"
#include "runtime/cuda/product_choices.h"
#include "runtime/plan/plan_device.h"
#include "runtime/plan/reserve.h"

namespace zeroplan {
namespace {

Backend backend_of(ProductChoices choices) {
  Backend backend{.kernel_of = cuda_kernel};
  backend.products = choices_line(choices);
  backend.new_context = [shared = std::make_shared<const ProductChoices>(std::move(choices))](Stream& compute) {
    return std::make_unique<CudaContext>(static_cast<cudaStream_t>(compute.native()), shared);
  };
  return backend;
}

int64_t all_receive_bytes(const Plan& plan) { return receive_bytes(plan, StreamKind::gather) + receive_bytes(plan, StreamKind::reduce); }

std::string nccl_line(const Plan& plan) {
  const bool fast = plan.header.reduce == ReduceMode::fast;
  return fmt::format("collectives by NCCL {} between {}; sums {}", nccl_version(), counted(plan.header.ranks, "GPU"),
                     fast ? "as it makes them (--reduce fast)" : "in the order of the ranks");
}

std::string shared_line(const Plan& plan, int gpus) {
  const bool fast = plan.header.reduce == ReduceMode::fast;
  return fmt::format("collectives by copies between {} on {}; sums in the order of the ranks{}", counted(plan.header.ranks, "rank"),
                     counted(gpus, "GPU"), fast ? ": --reduce fast is NCCL's, which takes a GPU for each rank" : "");
}

// The two communicators of each of these ranks. `id`: called for the gathers, then for the reductions.
void connect_by_nccl(const Plan& plan, NcclSetup setup, const std::function<std::string()>& id, Backend& backend) {
  for (const StreamKind kind : {StreamKind::gather, StreamKind::reduce}) {
    setup.id = id();
    setup.receive_bytes = receive_bytes(plan, kind);
    auto made = make_nccl_communicators(setup);
    for (size_t i = 0; i < made.size(); ++i)
      (kind == StreamKind::gather ? backend.ranks[i].gather : backend.ranks[i].reduce) = std::move(made[i]);
  }
}

GpuOfRank describe_gpu(int index, int seen, const Device& device) {
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  char machine[256] = {};
  gethostname(machine, sizeof machine - 1);
  std::string id;
  for (const char byte : properties.uuid.bytes) id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {machine, id, card_of(device), seen};
}

// Of rank 0, which each rank's GPU can carry out.
ProductChoices agreed_choices(const Plan& plan, const CudaJob& job, Device& device) {
  ProductChoices choices = unpacked_choices(job.broadcast(job.rank == 0 ? packed(choose_products(plan, 0, device)) : ""), job.rank);
  require_products(plan, job.rank, device, choices);
  return choices;
}

// Each of the ranks' GPUs, checked by rank 0, so that all say the same.
void compare_gpus(const CudaJob& job, const GpuOfRank& own) {
  std::vector<GpuOfRank> all;
  for (const std::string& text : job.gather(packed(own))) all.push_back(unpacked(text));
  if (const std::string trouble = job.broadcast(job.rank == 0 ? trouble_of(all) : ""); !trouble.empty()) throw Error(trouble);
}

}  // namespace

void require_gpu() { cuda_devices(); }

Backend make_cuda_backend(const Plan& plan, std::chrono::milliseconds deadline) {
  require_device(plan, DeviceKind::cuda);
  const int n = plan.header.ranks, count = std::min(n, cuda_devices());
  const bool by_nccl = n > 1 && count == n;
  std::vector<std::shared_ptr<Device>> devices;
  std::vector<std::string> cards;
  for (int r = 0; r < n; ++r) {
    devices.push_back(r < count ? make_cuda_device(r) : devices[r - count]);
    if (r < count) cards.push_back(card_of(*devices[r]));
  }
  require_alike(cards);
  if (!by_nccl) connect_gpus(count);
  for (int g = 0; g < count; ++g) require_memory(plan, *devices[g], g, (n - g + count - 1) / count, by_nccl ? all_receive_bytes(plan) : 0);
  const ProductChoices choices = choose_products(plan, 0, *devices[0]);
  for (int r = 1; r < count; ++r) require_products(plan, r, *devices[r], choices);
  Backend backend = backend_of(choices);
  for (int r = 0; r < n; ++r) backend.ranks.push_back({r, devices[r], nullptr, nullptr});
  if (n > 1) backend.collectives = by_nccl ? nccl_line(plan) : shared_line(plan, count);
  if (by_nccl) {
    NcclSetup setup{.size = n, .devices = devices, .deadline = deadline, .mode = plan.header.reduce};
    for (int r = 0; r < n; ++r) setup.ranks.push_back(r);
    connect_by_nccl(plan, std::move(setup), new_nccl_id, backend);
    return backend;
  }
  auto gather = make_cuda_local_communicators(devices, deadline), reduce = make_cuda_local_communicators(devices, deadline);
  for (int r = 0; r < n; ++r) {
    backend.ranks[r].gather = std::move(gather[r]);
    backend.ranks[r].reduce = std::move(reduce[r]);
  }
  return backend;
}

Backend make_cuda_process_backend(const Plan& plan, std::chrono::milliseconds deadline, const CudaJob& job) {
  require_device(plan, DeviceKind::cuda);
  const int seen = cuda_devices(), index = gpu_of(job.local_rank, seen);
  const std::shared_ptr<Device> device = make_cuda_device(index);
  compare_gpus(job, describe_gpu(index, seen, *device));
  require_memory(plan, *device, index, 1, all_receive_bytes(plan));
  Backend backend = backend_of(agreed_choices(plan, job, *device));
  backend.collectives = nccl_line(plan);
  backend.ranks.push_back({job.rank, device, nullptr, nullptr});
  connect_by_nccl(
      plan,
      {.size = job.size,
       .ranks = {job.rank},
       .devices = {device},
       .deadline = deadline,
       .mode = plan.header.reduce,
       .tell_peers = job.tell_peers,
       .check_peers = job.check_peers},
      [&] { return job.broadcast(job.rank == 0 ? new_nccl_id() : ""); }, backend);
  return backend;
}

}  // namespace zeroplan
