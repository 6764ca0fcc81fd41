// Stream capture and graphs: operations are recorded with their dependencies
// and replayed in a random order that respects them.
#include <algorithm>
#include <random>

#include "cudart/runtime.h"

using namespace cuda_host;
using namespace cuda_host::rt;

namespace cuda_host::rt {

namespace {

cudaStreamCaptureMode& thread_mode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

}  // namespace

void break_capture(const std::shared_ptr<Capture>& capture, cudaError_t why) {
  if (capture->broken == cudaSuccess) capture->broken = why;
}

// The rule of cudaThreadExchangeStreamCaptureMode's documentation.
cudaError_t unsafe_call() {
  if (thread_mode() == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : runtime().captures) {
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool forbids = mine ? capture->mode != cudaStreamCaptureModeRelaxed
                              : thread_mode() == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (!forbids) continue;
    break_capture(capture, cudaErrorStreamCaptureUnsupported);
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

// A forgotten dependency inside a graph shows as a wrong result for some seed.
// The order depends on nothing but the structure and the seed, so ranks that
// replay equal graphs with collectives agree on it.
void run_graph(const std::vector<CUgraphNode_st>& nodes, std::uint64_t seed) {
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::vector<std::size_t>> followers(nodes.size());
  std::vector<std::size_t> ready;
  for (const CUgraphNode_st& node : nodes) {
    missing[node.index] = node.after.size();
    for (const std::size_t before : node.after) followers[before].push_back(node.index);
    if (node.after.empty()) ready.push_back(node.index);
  }
  std::minstd_rand random(static_cast<unsigned>(seed * 7919U + 17U));
  while (!ready.empty()) {
    const std::size_t pick = random() % ready.size();
    const std::size_t index = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    pause_randomly(seed * 31U + index);
    if (nodes[index].run) nodes[index].run();
    for (const std::size_t next : followers[index]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
}

}  // namespace cuda_host::rt

namespace {

void leave_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* member : capture->members) {
    member->capture.reset();
    member->capture_after.clear();
  }
  runtime().captures.erase(capture);
}

// Every branch must have been joined to the origin: no leaf may be left over.
bool all_joined(const Capture& capture) {
  std::vector<bool> has_follower(capture.graph->nodes.size(), false);
  for (const auto& node : capture.graph->nodes) {
    for (const std::size_t before : node->after) has_follower[before] = true;
  }
  const auto& joined = capture.origin->capture_after;
  for (std::size_t i = 0; i < has_follower.size(); ++i) {
    if (!has_follower[i] && std::find(joined.begin(), joined.end(), i) == joined.end()) return false;
  }
  return true;
}

cudaError_t end_capture(CUstream_st* stream, cudaGraph_t* graph) {
  Runtime& r = runtime();
  *graph = nullptr;
  if (!stream->capture) return cudaErrorIllegalState;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) {
    break_capture(capture, cudaErrorStreamCaptureUnmatched);
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  cudaError_t result = cudaSuccess;
  if (capture->broken != cudaSuccess) {
    result = cudaErrorStreamCaptureInvalidated;
  } else if (!all_joined(*capture)) {
    result = cudaErrorStreamCaptureUnjoined;
  }
  leave_capture(capture);
  if (result != cudaSuccess) {
    delete capture->graph;
    return result;
  }
  r.graphs.insert(capture->graph);
  *graph = capture->graph;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->legacy) return finish(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return finish(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->graph = new CUgraph_st;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->members = {stream};
  capture->id = r.next_id++;
  r.captures.insert(capture);
  stream->capture = capture;
  stream->capture_after.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  CUstream_st* stream = resolve(handle);
  if (graph == nullptr) return finish(cudaErrorInvalidValue);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  return finish(end_capture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  const CUstream_st* stream = resolve(handle);
  if (status == nullptr) return finish(cudaErrorInvalidValue);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *status = !stream->capture                         ? cudaStreamCaptureStatusNone
            : stream->capture->broken == cudaSuccess ? cudaStreamCaptureStatusActive
                                                     : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count) {
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status); error != cudaSuccess) return error;
  const Lock lock(runtime().mutex);
  const CUstream_st* stream = resolve(handle);
  if (id != nullptr) *id = stream->capture ? stream->capture->id : 0;
  if (graph != nullptr) *graph = stream->capture ? stream->capture->graph : nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  CUDA_HOST_BEGIN();
  if (mode == nullptr) return finish(cudaErrorInvalidValue);
  std::swap(*mode, thread_mode());
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  if (!runtime().graphs.contains(graph) || count == nullptr) return finish(cudaErrorInvalidValue);
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    }
  }
  *count = nodes == nullptr ? graph->nodes.size() : std::min(*count, graph->nodes.size());
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  CUDA_HOST_BEGIN();
  if (node == nullptr || type == nullptr) return finish(cudaErrorInvalidValue);
  *type = node->type;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (exec == nullptr || !r.graphs.contains(graph)) return finish(cudaErrorInvalidValue);
  auto nodes = std::make_shared<std::vector<CUgraphNode_st>>();
  for (const auto& node : graph->nodes) nodes->push_back(*node);
  *exec = new CUgraphExec_st;
  (*exec)->nodes = std::move(nodes);
  r.execs.insert(*exec);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

// Same shape or not at all, as on the device.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  if (!r.execs.contains(exec) || !r.graphs.contains(graph)) return finish(cudaErrorInvalidValue);
  auto nodes = std::make_shared<std::vector<CUgraphNode_st>>();
  bool same = exec->nodes->size() == graph->nodes.size();
  for (std::size_t i = 0; same && i < graph->nodes.size(); ++i) {
    const CUgraphNode_st& fresh = *graph->nodes[i];
    const CUgraphNode_st& old = (*exec->nodes)[i];
    same = fresh.type == old.type && fresh.after == old.after;
    nodes->push_back(fresh);
  }
  if (info != nullptr) {
    *info = {};
    info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  }
  if (!same) return finish(cudaErrorGraphExecUpdateFailure);
  exec->nodes = std::move(nodes);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  return finish(runtime().execs.contains(exec) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (!r.execs.contains(exec)) return finish(cudaErrorInvalidValue);
  const std::uint64_t seed = settings().seed + exec->launches++;
  Request request{"graph", cudaGraphNodeTypeGraph, [nodes = exec->nodes, seed] { run_graph(*nodes, seed); }};
  // Launches of one executable graph never overlap.
  if (exec->last_launch) request.after.push_back(exec->last_launch);
  return finish(enqueue(stream, std::move(request), &exec->last_launch));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  if (runtime().graphs.erase(graph) == 0) return finish(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  if (runtime().execs.erase(exec) == 0) return finish(cudaErrorInvalidValue);
  delete exec;
  return cudaSuccess;
}
