// NCCL entry points: communicators and registration.
#include <atomic>
#include <cstring>

#include "nccl/registry.h"

using namespace cuda_host;
using namespace cuda_host::nccl;

namespace {

ncclResult_t init(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, bool blocking) {
  if (comm == nullptr || ranks <= 0 || rank < 0 || rank >= ranks) return refuse(ncclInvalidArgument, "bad rank or size");
  auto member = std::make_shared<Member>();
  member->team = team_of(id, ranks);
  if (member->team->size() != ranks) return refuse(ncclInvalidArgument, "ranks disagree on the size");
  member->rank = rank;
  member->device = rt::current_device();
  member->blocking = blocking;
  std::string why;
  if (const ncclResult_t result = member->team->join(*member, why); result != ncclSuccess) return refuse(result, why);
  *comm = publish(member);
  if (group().depth > 0) {
    group().joining.push_back(member);
    return ncclSuccess;
  }
  if (!blocking) return ncclInProgress;
  return member->team->wait_complete() ? ncclSuccess : refuse(ncclRemoteError, "not all ranks joined in time");
}

ncclResult_t finish_work(const std::shared_ptr<Member>& member) {
  rt::Lock lock(rt::runtime().mutex);
  const rt::OperationPtr last = member->last;
  return rt::wait_done(lock, last) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  CUDA_HOST_NCCL_BEGIN();
  if (version == nullptr) return ncclInvalidArgument;
  *version = settings().nccl_version != 0 ? settings().nccl_version : NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  CUDA_HOST_NCCL_BEGIN();
  static std::atomic<std::uint64_t> next{1};
  if (id == nullptr) return ncclInvalidArgument;
  std::memset(id, 0, sizeof(*id));
  const std::uint64_t number = next++;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  CUDA_HOST_NCCL_BEGIN();
  return init(comm, ranks, id, rank, true);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  CUDA_HOST_NCCL_BEGIN();
  if (config != nullptr && config->magic != 0xcafebeefU) return refuse(ncclInvalidArgument, "config lacks NCCL_CONFIG_INITIALIZER");
  return init(comm, ranks, id, rank, config == nullptr || config->blocking != 0);
}
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int count, const int* devices) {
  CUDA_HOST_NCCL_BEGIN();
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const int before = rt::current_device();
  ncclResult_t result = ncclGroupStart();
  for (int r = 0; r < count && result == ncclSuccess; ++r) {
    rt::current_device() = devices == nullptr ? r : devices[r];
    result = init(comm + r, count, id, r, true);
  }
  rt::current_device() = before;
  const ncclResult_t end = ncclGroupEnd();
  return result == ncclSuccess ? end : result;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t*) {
  CUDA_HOST_NCCL_MEMBER();
  if (out == nullptr) return ncclInvalidArgument;
  *out = nullptr;
  auto [team, rank] = member->team->split(*member, color, key);
  if (rank < 0) return refuse(ncclRemoteError, "not all ranks called ncclCommSplit in time");
  if (!team) return ncclSuccess;
  auto part = std::make_shared<Member>();
  part->team = team;
  part->rank = rank;
  part->device = member->device;
  std::string why;
  if (const ncclResult_t result = team->join(*part, why); result != ncclSuccess) return refuse(result, why);
  *out = publish(part);
  return team->wait_complete() ? ncclSuccess : ncclRemoteError;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  CUDA_HOST_NCCL_MEMBER();
  return finish_work(member);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  CUDA_HOST_NCCL_MEMBER();
  const ncclResult_t result = finish_work(member);
  forget(comm);
  return result;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  CUDA_HOST_NCCL_MEMBER();
  member->team->abort(*member);
  finish_work(member);
  forget(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  CUDA_HOST_NCCL_MEMBER();
  if (error == nullptr) return ncclInvalidArgument;
  *error = !member->blocking && !member->team->complete() ? ncclInProgress : member->async_error;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  CUDA_HOST_NCCL_MEMBER();
  *count = member->team->size();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  CUDA_HOST_NCCL_MEMBER();
  *rank = member->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  CUDA_HOST_NCCL_MEMBER();
  *device = member->device;
  return ncclSuccess;
}

// Registration changes speed only; what can be checked is the range and the pairing.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t bytes, void** handle) {
  CUDA_HOST_NCCL_MEMBER();
  if (handle == nullptr || bytes == 0 || !rt::is_device_range(buffer, bytes)) return refuse(ncclInvalidArgument, "not device memory");
  auto* token = new char;
  member->registrations.insert(token);
  *handle = token;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  CUDA_HOST_NCCL_MEMBER();
  if (member->registrations.erase(handle) == 0) return refuse(ncclInvalidArgument, "not a registration of this communicator");
  delete static_cast<char*>(handle);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t bytes, ncclWindow_t* window, int) {
  return ncclCommRegister(comm, buffer, bytes, reinterpret_cast<void**>(window));
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) { return ncclCommDeregister(comm, window); }

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  CUDA_HOST_NCCL_BEGIN();
  return cudaMalloc(pointer, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* pointer) {
  CUDA_HOST_NCCL_BEGIN();
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}
const char* ncclGetLastError(ncclComm_t comm) {
  const auto member = find(comm);
  if (member && !member->error_text.empty()) thread_error() = member->error_text;
  return thread_error().c_str();
}
