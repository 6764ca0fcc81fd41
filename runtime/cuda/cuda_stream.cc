#include "runtime/cuda/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/errors.h"

namespace zeroplan {

void StreamError::keep(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

std::exception_ptr StreamError::get() const {
  std::lock_guard lock(mutex_);
  return error_;
}

CudaEvent::CudaEvent() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

CudaRecording::CudaRecording(cudaGraph_t graph) {
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "cudaGraphInstantiate");
}
CudaRecording::~CudaRecording() { cudaGraphExecDestroy(executable_); }

CudaStream::CudaStream(int priority) {
  check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
}

CudaStream::~CudaStream() { cudaStreamDestroy(stream_); }

template <typename Fn>
void CudaStream::run(const Fn& work) {
  if (error_->get()) return;
  try {
    work();
  } catch (...) {
    error_->keep(std::current_exception());
  }
}

void CudaStream::rethrow() const {
  if (const std::exception_ptr error = error_->get()) std::rethrow_exception(error);
}

void CudaStream::adopt(const std::shared_ptr<StreamError>& source) {
  if (const std::exception_ptr error = source->get()) error_->keep(error);
}

void CudaStream::launch(Task task, void* argument) {
  run([&] { task(argument); });
}

void CudaStream::host_call(Task task, void* argument) {
  run([&] { check_cuda(cudaLaunchHostFunc(stream_, task, argument), "cudaLaunchHostFunc"); });
}

void CudaStream::copy(void* to, const void* from, int64_t bytes) {
  if (bytes == 0 || to == from) return;
  run([&] { check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_), "cudaMemcpyAsync"); });
}

void CudaStream::fill(void* to, int value, int64_t bytes) {
  if (bytes == 0) return;
  run([&] { check_cuda(cudaMemsetAsync(to, value, static_cast<size_t>(bytes), stream_), "cudaMemsetAsync"); });
}

void CudaStream::mark(uint32_t* word, uint32_t value) {
  run([&] { enqueue_mark(stream_, word, value); });
}

// Also on a failed stream: whoever waits must learn of the failure.
void CudaStream::record(Event& event) {
  auto& e = static_cast<CudaEvent&>(event);
  e.source = error_;
  const cudaError_t status = cudaEventRecord(e.get(), stream_);
  run([&] { check_cuda(status, "cudaEventRecord"); });
}

void CudaStream::wait(Event& event) {
  rethrow();
  auto& e = static_cast<CudaEvent&>(event);
  if (e.source && e.source != error_) {
    adopt(e.source);
    if (std::find(sources_.begin(), sources_.end(), e.source) == sources_.end()) sources_.push_back(e.source);
  }
  run([&] { check_cuda(cudaStreamWaitEvent(stream_, e.get(), 0), "cudaStreamWaitEvent"); });
  rethrow();
}

void CudaStream::begin_recording() {
  run([&] { check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"); });
}

std::unique_ptr<Recording> CudaStream::end_recording() {
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream_, &graph);  // also on a failed stream: it must not stay in capture
  std::unique_ptr<Recording> recording;
  run([&] {
    check_cuda(status, "cudaStreamEndCapture");
    recording = std::make_unique<CudaRecording>(std::exchange(graph, nullptr));
  });
  if (graph != nullptr) cudaGraphDestroy(graph);
  return recording;
}

void CudaStream::replay(Recording& recording) {
  run([&] { check_cuda(cudaGraphLaunch(static_cast<CudaRecording&>(recording).get(), stream_), "cudaGraphLaunch"); });
}

void CudaStream::synchronize() {
  rethrow();
  run([&] { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); });
  if (check_) run(check_);
  for (const auto& source : sources_) adopt(source);
  sources_.clear();
  rethrow();
}

}  // namespace zeroplan
