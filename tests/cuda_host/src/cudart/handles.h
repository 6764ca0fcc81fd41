// What stands behind the handles of the runtime API: operations, streams, events, graphs, captures.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace cuda_host::rt {

using Clock = std::chrono::steady_clock;

// One entry of a stream.
struct Operation {
  const char* name = "";
  std::function<void()> run;
  std::vector<std::shared_ptr<Operation>> after;  // besides the stream's own order
  bool done = false;
  Clock::time_point finished;
  char queued_token = 0, done_token = 0;  // addresses for the thread sanitizer
};
using OperationPtr = std::shared_ptr<Operation>;

struct Capture;

}  // namespace cuda_host::rt

// The toolkit's opaque handle types.
struct CUgraphNode_st {
  const char* name = "";
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  std::function<void()> run;
  std::vector<std::size_t> after;  // indices in the graph
  std::size_t index = 0;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<CUgraphNode_st>> nodes;
  cuda_host::rt::OperationPtr last_launch;
  std::uint64_t launches = 0;
};

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  cuda_host::rt::OperationPtr operation;            // null: never recorded
  std::shared_ptr<cuda_host::rt::Capture> capture;  // recorded into a capture
  std::vector<std::size_t> capture_after;
};

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  bool legacy = false;
  std::deque<cuda_host::rt::OperationPtr> queue;
  cuda_host::rt::OperationPtr tail;  // the latest operation, maybe done
  bool stop = false;
  std::thread worker;
  std::shared_ptr<cuda_host::rt::Capture> capture;
  std::vector<std::size_t> capture_after;
  std::uint64_t executed = 0;
};

namespace cuda_host::rt {

struct Capture {
  CUgraph_st* graph = nullptr;
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  cudaError_t broken = cudaSuccess;  // a forbidden call ended the capture
  std::set<CUstream_st*> members;
  unsigned long long id = 0;
};

}  // namespace cuda_host::rt
