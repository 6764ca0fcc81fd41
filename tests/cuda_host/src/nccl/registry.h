// Live communicators, the open group of a thread, and error texts.
#pragma once

#include "nccl/team.h"

namespace cuda_host::nccl {

// What the calling thread has collected between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  struct Batch {
    std::shared_ptr<Member> member;
    cudaStream_t stream;
    std::vector<Call> calls;
  };
  std::vector<Batch> batches;
  std::vector<std::shared_ptr<Member>> joining;
};
Group& group();

std::string& thread_error();
ncclResult_t refuse(ncclResult_t code, const std::string& why);  // keeps the text for ncclGetLastError

std::shared_ptr<Member> find(ncclComm_t comm);  // null when not live
ncclComm_t publish(std::shared_ptr<Member> member);
void forget(ncclComm_t comm);
std::shared_ptr<Team> team_of(const ncclUniqueId& id, int ranks);

}  // namespace cuda_host::nccl

#define CUDA_HOST_NCCL_BEGIN() \
  if (int code = 0; cuda_host::rt::injected(__func__, code)) return static_cast<ncclResult_t>(code)
#define CUDA_HOST_NCCL_MEMBER()                    \
  CUDA_HOST_NCCL_BEGIN();                          \
  const auto member = cuda_host::nccl::find(comm); \
  if (!member) return cuda_host::nccl::refuse(ncclInvalidArgument, "not a live communicator")
