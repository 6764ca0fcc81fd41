// NCCL entry points: groups, collectives, sends and receives.
#include "nccl/registry.h"

using namespace cuda_host;
using namespace cuda_host::nccl;

namespace {

ncclResult_t launch(const std::shared_ptr<Member>& member, cudaStream_t stream, std::vector<Call> calls) {
  int device = 0;
  if (cudaStreamGetDevice(stream, &device) != cudaSuccess) return refuse(ncclUnhandledCudaError, "invalid stream");
  if (stream != nullptr && device != member->device) {
    return refuse(ncclInvalidUsage, "the stream belongs to device " + std::to_string(device) + ", the communicator to device " +
                                        std::to_string(member->device));
  }
  rt::Request request{"nccl", cudaGraphNodeTypeKernel, [member, calls = std::move(calls)] { member->team->execute(*member, calls); }};
  if (member->last) request.after.push_back(member->last);
  const int before = rt::current_device();
  rt::current_device() = member->device;  // for the default stream
  const cudaError_t error = rt::enqueue_on(stream, std::move(request), &member->last);
  rt::current_device() = before;
  return error == cudaSuccess ? ncclSuccess : refuse(ncclUnhandledCudaError, cudaGetErrorString(error));
}

struct Sizes {
  std::size_t send, recv;  // in elements
};

Sizes buffer_sizes(const Call& c, const Member& m) {
  const auto ranks = static_cast<std::size_t>(m.team->size());
  const bool root = c.peer == m.rank;
  switch (c.kind) {
    case Kind::AllGather: return {c.count, c.count * ranks};
    case Kind::ReduceScatter: return {c.count * ranks, c.count};
    case Kind::AlltoAll: return {c.count * ranks, c.count * ranks};
    case Kind::Broadcast: return {root ? c.count : 0, c.count};
    case Kind::Reduce: return {c.count, root ? c.count : 0};
    case Kind::Gather: return {c.count, root ? c.count * ranks : 0};
    case Kind::Scatter: return {root ? c.count * ranks : 0, c.count};
    case Kind::Send: return {c.count, 0};
    case Kind::Recv: return {0, c.count};
    default: return {c.count, c.count};
  }
}

ncclResult_t submit(const char* function, ncclComm_t comm, cudaStream_t stream, const Call& call) {
  int code = 0;
  if (rt::injected(function, code)) return static_cast<ncclResult_t>(code);
  const auto member = find(comm);
  if (!member) return refuse(ncclInvalidArgument, "not a live communicator");
  const std::size_t element = type_size(call.type);
  if (element == 0) return refuse(ncclInvalidArgument, "unsupported data type");
  if (call.peer < 0 || call.peer >= member->team->size()) return refuse(ncclInvalidArgument, "root or peer out of range");
  if (call.op < ncclSum || call.op > ncclAvg) return refuse(ncclInvalidArgument, "unknown reduction");
  if (member->async_error != ncclSuccess) return refuse(member->async_error, member->error_text);
  if (call.count == 0) return ncclSuccess;
  const Sizes sizes = buffer_sizes(call, *member);
  if (!rt::is_device_range(call.send, sizes.send * element) || !rt::is_device_range(call.recv, sizes.recv * element)) {
    return refuse(ncclInvalidArgument, describe(call) + ": a buffer is not device memory or too small");
  }
  if (group().depth == 0) return launch(member, stream, {call});
  for (Group::Batch& batch : group().batches) {
    if (batch.member == member && batch.stream == stream) {
      batch.calls.push_back(call);
      return ncclSuccess;
    }
  }
  group().batches.push_back({member, stream, {call}});
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGroupStart() {
  CUDA_HOST_NCCL_BEGIN();
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  CUDA_HOST_NCCL_BEGIN();
  Group& g = group();
  if (g.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--g.depth > 0) return ncclSuccess;
  const auto joining = std::move(g.joining);
  const auto batches = std::move(g.batches);
  g.joining.clear();
  g.batches.clear();
  for (const auto& member : joining) {
    if (member->blocking && !member->team->wait_complete()) return refuse(ncclRemoteError, "not all ranks joined in time");
  }
  for (const Group::Batch& batch : batches) {
    if (const ncclResult_t result = launch(batch.member, batch.stream, batch.calls); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::AllGather, send, recv, count, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::ReduceScatter, send, recv, count, type, op, 0});
}
ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::AllReduce, send, recv, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Broadcast, send, recv, count, type, ncclSum, root});
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Broadcast, buffer, buffer, count, type, ncclSum, root});
}
ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Reduce, send, recv, count, type, op, root});
}
ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::AlltoAll, send, recv, count, type, ncclSum, 0});
}
ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Gather, send, recv, count, type, ncclSum, root});
}
ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Scatter, send, recv, count, type, ncclSum, root});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Send, send, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return submit(__func__, comm, stream, {Kind::Recv, nullptr, recv, count, type, ncclSum, peer});
}
