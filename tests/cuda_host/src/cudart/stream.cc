// Streams are worker threads; dependencies are pointers to earlier operations.
#include <random>

#include "cudart/runtime.h"

namespace cuda_host::rt {

void allow_device_access();  // memory.cpp

namespace {

std::uint64_t mix(std::uint64_t x) {  // a SplitMix64 step
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

bool all_done(const std::vector<OperationPtr>& operations) {
  for (const OperationPtr& op : operations) {
    if (!op->done) return false;
  }
  return true;
}

void work(CUstream_st* stream) {
  Runtime& r = runtime();
  allow_device_access();
  current_device() = stream->device;
  for (;;) {
    OperationPtr op;
    {
      Lock lock(r.mutex);
      r.changed.wait(lock.get(), [&] { return stream->queue.empty() ? stream->stop : all_done(stream->queue.front()->after); });
      if (stream->queue.empty()) return;
      op = stream->queue.front();
    }
    mark_acquire(&op->queued_token);
    for (const OperationPtr& before : op->after) mark_acquire(&before->done_token);
    bool dead = false;
    std::uint64_t salt = 0;
    {
      const Lock lock(r.mutex);
      dead = r.device(stream->device).fault != cudaSuccess;
      salt = mix(stream->id) + stream->executed++;
    }
    if (!dead && op->run) {
      pause_randomly(salt);
      op->run();
    }
    mark_release(&op->done_token);
    const Lock lock(r.mutex);
    op->run = nullptr;
    op->after.clear();
    op->done = true;
    op->finished = Clock::now();
    stream->queue.pop_front();
    op.reset();
    r.changed.notify_all();
  }
}

}  // namespace

void pause_randomly(std::uint64_t salt) {
  const unsigned limit = settings().max_delay_us;
  if (limit == 0) return;
  const std::uint64_t draw = mix(settings().seed * 1000003U + salt);
  // Half the operations start at once and the others clearly later: a uniform
  // delay would rarely reorder, and less so on a busy machine.
  if (draw & 1U) return;
  std::this_thread::sleep_for(std::chrono::microseconds(limit / 2 + (draw >> 1) % (limit / 2 + 1)));
}

CUstream_st* create_stream(int device, unsigned flags, int priority) {
  Runtime& r = runtime();
  auto* stream = new CUstream_st;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = r.next_id++;
  r.streams.insert(stream);
  stream->worker = std::thread(work, stream);
  return stream;
}

// Lets queued work finish first, as cudaStreamDestroy does.
void stop_stream(Lock& lock, CUstream_st* stream) {
  Runtime& r = runtime();
  r.streams.erase(stream);
  stream->stop = true;
  const auto patience = std::chrono::milliseconds(settings().hang_timeout_ms);
  r.changed.notify_all();
  const bool idle = r.changed.wait_for(lock.get(), patience, [&] { return stream->queue.empty(); });
  if (!idle) {
    stream->worker.detach();  // hung in an operation: leak it rather than hang too
    return;
  }
  std::thread worker = std::move(stream->worker);
  lock.unlock();
  worker.join();
  lock.lock();
  delete stream;
}

CUstream_st* resolve(cudaStream_t handle) {
  Runtime& r = runtime();
  static thread_local CUstream_st* per_thread[64] = {};
  const int device = current_device();
  if (handle == nullptr || handle == cudaStreamLegacy) {
    Device& d = r.device(device);
    if (d.legacy == nullptr) {
      d.legacy = create_stream(device, cudaStreamDefault, 0);
      d.legacy->legacy = true;
    }
    return d.legacy;
  }
  if (handle == cudaStreamPerThread) {
    CUstream_st*& mine = per_thread[device % 64];
    if (mine == nullptr || !r.streams.contains(mine)) mine = create_stream(device, cudaStreamDefault, 0);
    return mine;
  }
  return r.streams.contains(handle) ? handle : nullptr;
}

namespace {

// The legacy stream waits for every blocking stream, and they wait for it.
void add_legacy_order(CUstream_st* stream, std::vector<OperationPtr>& after) {
  Runtime& r = runtime();
  if (stream->legacy) {
    for (const CUstream_st* other : r.streams) {
      if (other != stream && other->device == stream->device && (other->flags & cudaStreamNonBlocking) == 0 && other->tail) {
        after.push_back(other->tail);
      }
    }
  } else if ((stream->flags & cudaStreamNonBlocking) == 0) {
    const CUstream_st* legacy = r.device(stream->device).legacy;
    if (legacy != nullptr && legacy->tail) after.push_back(legacy->tail);
  }
}

cudaError_t record(CUstream_st* stream, Request& request) {
  Capture& capture = *stream->capture;
  if (capture.broken != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
  auto node = std::make_unique<CUgraphNode_st>();
  node->name = request.name;
  node->type = request.type;
  node->run = std::move(request.run);
  node->after = stream->capture_after;
  node->index = capture.graph->nodes.size();
  stream->capture_after = {node->index};
  capture.graph->nodes.push_back(std::move(node));
  return cudaSuccess;
}

cudaError_t check_implicit_order(const CUstream_st* stream) {
  if (!stream->legacy) return cudaSuccess;
  for (const auto& capture : runtime().captures) {
    for (const CUstream_st* member : capture->members) {
      if (member->device == stream->device && (member->flags & cudaStreamNonBlocking) == 0) {
        break_capture(capture, cudaErrorStreamCaptureImplicit);
        return cudaErrorStreamCaptureImplicit;
      }
    }
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t enqueue(CUstream_st* stream, Request request, OperationPtr* queued) {
  if (stream->capture) return record(stream, request);
  if (const cudaError_t error = check_implicit_order(stream); error != cudaSuccess) return error;
  auto op = std::make_shared<Operation>();
  op->name = request.name;
  op->run = std::move(request.run);
  op->after = std::move(request.after);
  add_legacy_order(stream, op->after);
  mark_release(&op->queued_token);
  stream->queue.push_back(op);
  stream->tail = op;
  if (queued != nullptr) *queued = op;
  runtime().changed.notify_all();
  return cudaSuccess;
}

cudaError_t enqueue_on(cudaStream_t handle, Request request, OperationPtr* queued) {
  Runtime& r = runtime();
  const Lock lock(r.mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  return enqueue(stream, std::move(request), queued);
}

cudaError_t wait_done(Lock& lock, const OperationPtr& operation) {
  Runtime& r = runtime();
  if (!operation) return cudaSuccess;
  const auto patience = std::chrono::milliseconds(settings().hang_timeout_ms);
  if (!r.changed.wait_for(lock.get(), patience, [&] { return operation->done; })) {
    const std::string text = std::string("hang: operation '") + operation->name + "' has not finished after hang_timeout_ms";
    lock.unlock();
    raise_fault(current_device(), cudaErrorLaunchTimeout, text);
    lock.lock();
    return cudaErrorLaunchTimeout;
  }
  mark_acquire(&operation->done_token);
  return r.device(current_device()).fault;
}

cudaError_t wait_device(Lock& lock, int device) {
  std::vector<OperationPtr> tails;
  for (const CUstream_st* stream : runtime().streams) {
    if (stream->device == device && stream->tail) tails.push_back(stream->tail);
  }
  cudaError_t result = runtime().device(device).fault;
  for (const OperationPtr& tail : tails) {
    if (const cudaError_t error = wait_done(lock, tail); error != cudaSuccess) result = error;
  }
  return result;
}

}  // namespace cuda_host::rt
