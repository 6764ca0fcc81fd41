// Streams, events, host functions.
#include <algorithm>

#include "cudart/runtime.h"

using namespace cuda_host;
using namespace cuda_host::rt;

namespace {

// Looking at a captured stream or event from the host breaks the capture.
cudaError_t forbid_captured(const CUstream_st* stream) {
  if (!stream->capture) return cudaSuccess;
  break_capture(stream->capture, cudaErrorStreamCaptureUnsupported);
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t create(cudaStream_t* out, unsigned flags, int priority) {
  if (out == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
  const Lock lock(runtime().mutex);
  *out = create_stream(current_device(), flags, std::clamp(priority, -5, 0));
  return cudaSuccess;
}

// Joins the waiting stream to the capture the event belongs to.
cudaError_t join_capture(CUstream_st* stream, const CUevent_st* event) {
  if (stream->capture && stream->capture != event->capture) {
    break_capture(stream->capture, cudaErrorStreamCaptureMerge);
    break_capture(event->capture, cudaErrorStreamCaptureMerge);
    return cudaErrorStreamCaptureMerge;
  }
  if (stream->legacy) return cudaErrorStreamCaptureImplicit;
  stream->capture = event->capture;
  stream->capture->members.insert(stream);
  for (const std::size_t index : event->capture_after) {
    auto& after = stream->capture_after;
    if (std::find(after.begin(), after.end(), index) == after.end()) after.push_back(index);
  }
  return cudaSuccess;
}

cudaError_t wait_event(CUstream_st* stream, const CUevent_st* event) {
  if (event->capture && runtime().captures.contains(event->capture)) return join_capture(stream, event);
  if (stream->capture) {
    // The captured work would depend on something outside the graph.
    break_capture(stream->capture, cudaErrorStreamCaptureIsolation);
    return cudaErrorStreamCaptureIsolation;
  }
  if (!event->operation) return cudaSuccess;
  return enqueue(stream, {"wait event", cudaGraphNodeTypeWaitEvent, [] {}, {event->operation}});
}

cudaError_t check_event(const CUevent_st* event) {
  if (!runtime().events.contains(const_cast<CUevent_st*>(event))) return cudaErrorInvalidResourceHandle;
  if (event->capture && runtime().captures.contains(event->capture)) {
    break_capture(event->capture, cudaErrorCapturedEvent);
    return cudaErrorCapturedEvent;
  }
  return cudaSuccess;
}

cudaError_t elapsed(float* ms, const CUevent_st* start, const CUevent_st* end) {
  for (const CUevent_st* event : {start, end}) {
    if (const cudaError_t error = check_event(event); error != cudaSuccess) return error;
    if ((event->flags & cudaEventDisableTiming) != 0 || !event->operation) return cudaErrorInvalidResourceHandle;
  }
  if (!start->operation->done || !end->operation->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(end->operation->finished - start->operation->finished).count();
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  CUDA_HOST_BEGIN();
  return finish(create(stream, cudaStreamDefault, 0));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  CUDA_HOST_BEGIN();
  return finish(create(stream, flags, 0));
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  CUDA_HOST_BEGIN();
  return finish(create(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  Lock lock(runtime().mutex);
  if (!runtime().streams.contains(handle) || handle->legacy) return finish(cudaErrorInvalidResourceHandle);
  if (handle->capture) {
    break_capture(handle->capture, cudaErrorStreamCaptureInvalidated);
    handle->capture->members.erase(handle);
  }
  stop_stream(lock, handle);
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  const CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  const CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *flags = stream->flags;
  return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  const CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *device = stream->device;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  Lock lock(runtime().mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = forbid_captured(stream); error != cudaSuccess) return finish(error);
  const OperationPtr tail = stream->tail;
  return finish(wait_done(lock, tail));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = forbid_captured(stream); error != cudaSuccess) return finish(error);
  if (stream->tail && !stream->tail->done) return finish(cudaErrorNotReady);
  if (stream->tail) mark_acquire(&stream->tail->done_token);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr || !runtime().events.contains(event)) return finish(cudaErrorInvalidResourceHandle);
  return finish(wait_event(stream, event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  CUDA_HOST_BEGIN();
  if (function == nullptr) return finish(cudaErrorInvalidValue);
  return finish(enqueue_on(handle, {"host function", cudaGraphNodeTypeHost, [=] { function(data); }}));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  CUDA_HOST_BEGIN();
  if (event == nullptr || flags > 7U) return finish(cudaErrorInvalidValue);
  const Lock lock(runtime().mutex);
  *event = new CUevent_st;
  (*event)->device = current_device();
  (*event)->flags = flags;
  runtime().events.insert(*event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  if (runtime().events.erase(event) == 0) return finish(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  CUstream_st* stream = resolve(handle);
  if (stream == nullptr || !runtime().events.contains(event)) return finish(cudaErrorInvalidResourceHandle);
  if (stream->device != event->device) return finish(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    event->operation.reset();
    event->capture = stream->capture;
    event->capture_after = stream->capture_after;
    return cudaSuccess;
  }
  event->capture.reset();
  return finish(enqueue(stream, {"record event", cudaGraphNodeTypeEventRecord, [] {}}, &event->operation));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) { return cudaEventRecord(event, stream); }

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CUDA_HOST_BEGIN();
  Lock lock(runtime().mutex);
  if (const cudaError_t error = check_event(event); error != cudaSuccess) return finish(error);
  const OperationPtr op = event->operation;
  return finish(wait_done(lock, op));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  CUDA_HOST_BEGIN();
  const Lock lock(runtime().mutex);
  if (const cudaError_t error = check_event(event); error != cudaSuccess) return finish(error);
  if (const cudaError_t error = unsafe_call(); error != cudaSuccess) return finish(error);
  if (event->operation && !event->operation->done) return finish(cudaErrorNotReady);
  if (event->operation) mark_acquire(&event->operation->done_token);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  CUDA_HOST_BEGIN();
  if (ms == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(runtime().mutex);
  return finish(elapsed(ms, start, end));
}
