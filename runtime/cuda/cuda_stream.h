#pragma once
// The parts of the CUDA device. Only runtime/cuda includes this.
#include <cuda_runtime_api.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/device.h"

namespace zeroplan {

// The error of a stream, shared with the events that it recorded: whoever waits for one fails with it too.
class StreamError {
 public:
  void keep(std::exception_ptr error);  // the first one
  std::exception_ptr get() const;

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

class CudaEvent : public Event {
 public:
  CudaEvent();
  ~CudaEvent() override;
  cudaEvent_t get() const { return event_; }
  std::shared_ptr<StreamError> source;  // of the stream that recorded it last

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaRecording : public Recording {
 public:
  explicit CudaRecording(cudaGraph_t graph);  // instantiates and destroys it
  ~CudaRecording() override;
  cudaGraphExec_t get() const { return executable_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class CudaStream : public Stream {
 public:
  explicit CudaStream(int priority);
  ~CudaStream() override;
  void launch(Task task, void* argument) override;
  void host_call(Task task, void* argument) override;
  void copy(void* to, const void* from, int64_t bytes) override;
  void fill(void* to, int value, int64_t bytes) override;
  void mark(uint32_t* word, uint32_t value) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  void* native() override { return stream_; }
  const std::shared_ptr<StreamError>& error() const { return error_; }
  // Called behind each synchronize, for what the device does not report; what it throws is the stream's error.
  void check_by(std::function<void()> check) { check_ = std::move(check); }
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void replay(Recording& recording) override;

 private:
  template <typename Fn>
  void run(const Fn& work);
  void adopt(const std::shared_ptr<StreamError>& source);
  void rethrow() const;

  cudaStream_t stream_ = nullptr;
  std::shared_ptr<StreamError> error_ = std::make_shared<StreamError>();
  std::function<void()> check_;
  std::vector<std::shared_ptr<StreamError>> sources_;  // of the events waited for since the last synchronize, each once
};

// A kernel of one thread: *word = value, seen by the host (mark.cu). `word` is pinned host memory.
void enqueue_mark(cudaStream_t stream, uint32_t* word, uint32_t value);

}  // namespace zeroplan
