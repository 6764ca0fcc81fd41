#include "pipeline.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernels.h"

namespace example {

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorName(error));
}
void check(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetErrorString(result));
}

class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) { check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(float))); }
  explicit Buffer(const std::vector<float>& values) : Buffer(values.size()) {
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(float), cudaMemcpyHostToDevice));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* get() const { return data_; }
  int count() const { return static_cast<int>(count_); }
  std::vector<float> values() const {
    std::vector<float> host(count_);
    check(cudaMemcpy(host.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  float* data_ = nullptr;
  std::size_t count_;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record_and_wait(const Stream& from, const Stream& to) const {
    check(cudaEventRecord(event_, from.get()));
    check(cudaStreamWaitEvent(to.get(), event_, 0));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Runs body(rank, comm, stream) on one thread per rank, one device each.
void on_ranks(int ranks, const std::function<void(int, ncclComm_t, const Stream&)>& body) {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        check(cudaSetDevice(rank));
        ncclComm_t comm = nullptr;
        check(ncclCommInitRank(&comm, ranks, id, rank));
        {
          const Stream stream;
          body(rank, comm, stream);
        }
        check(ncclCommDestroy(comm));
      } catch (const std::exception& e) {
        errors[static_cast<std::size_t>(rank)] = e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) {
    if (!e.empty()) throw std::runtime_error(e);
  }
}

}  // namespace

std::vector<float> two_streams(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, bool with_wait) {
  const Buffer da(a), db(b), dc(c), x(a.size()), y(a.size());
  const Stream first, second;
  const Event x_ready;
  check(vector_add(first.get(), da.get(), db.get(), x.get(), x.count()));
  if (with_wait) x_ready.record_and_wait(first, second);
  check(vector_add(second.get(), x.get(), dc.get(), y.get(), y.count()));
  check(cudaStreamSynchronize(second.get()));
  return y.values();
}

std::vector<float> replay_graph(const std::vector<float>& start, int replays) {
  const Buffer x(start), one(std::vector<float>(start.size(), 1.0F)), left(start.size()), right(start.size());
  const Stream main, side;
  const Event fork, join;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(main.get(), cudaStreamCaptureModeThreadLocal));
  fork.record_and_wait(main, side);
  check(vector_add(main.get(), x.get(), one.get(), left.get(), x.count()));
  check(vector_add(side.get(), x.get(), one.get(), right.get(), x.count()));
  join.record_and_wait(side, main);
  check(vector_add(main.get(), left.get(), right.get(), x.get(), x.count()));
  check(cudaStreamEndCapture(main.get(), &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphDestroy(graph));
  for (int i = 0; i < replays; ++i) check(cudaGraphLaunch(exec, main.get()));
  check(cudaStreamSynchronize(main.get()));
  check(cudaGraphExecDestroy(exec));
  return x.values();
}

std::vector<std::vector<float>> all_gather(const std::vector<std::vector<float>>& shards) {
  std::vector<std::vector<float>> result(shards.size());
  on_ranks(static_cast<int>(shards.size()), [&](int rank, ncclComm_t comm, const Stream& stream) {
    const auto& mine = shards[static_cast<std::size_t>(rank)];
    const Buffer send(mine), recv(mine.size() * shards.size());
    check(ncclAllGather(send.get(), recv.get(), mine.size(), ncclFloat, comm, stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    result[static_cast<std::size_t>(rank)] = recv.values();
  });
  return result;
}

std::vector<std::vector<float>> reduce_scatter(const std::vector<std::vector<float>>& inputs) {
  std::vector<std::vector<float>> result(inputs.size());
  on_ranks(static_cast<int>(inputs.size()), [&](int rank, ncclComm_t comm, const Stream& stream) {
    const auto& mine = inputs[static_cast<std::size_t>(rank)];
    const std::size_t shard = mine.size() / inputs.size();
    const Buffer send(mine), recv(shard);
    check(ncclReduceScatter(send.get(), recv.get(), shard, ncclFloat, ncclSum, comm, stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    result[static_cast<std::size_t>(rank)] = recv.values();
  });
  return result;
}

}  // namespace example
