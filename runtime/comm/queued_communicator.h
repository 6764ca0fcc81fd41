#pragma once
// A communicator whose operations are carried out one by one on the thread that carries out their stream's tasks.
#include <vector>

#include "runtime/comm/communicator.h"

namespace zeroplan {

enum class CallKind : uint8_t { all_gather, reduce_scatter, all_reduce, broadcast, barrier };
const char* call_kind_name(CallKind kind);

// What one rank asks for. `data` is what its peers read (all_reduce: and write).
struct CollectiveCall {
  CallKind kind{};
  void* data = nullptr;
  void* own = nullptr;  // all_gather: whole buffer; reduce_scatter: accumulator
  int64_t count = 0;    // bytes or elements
  DType dtype = DType::f32;
  int contributors = 0;
  Fold fold = Fold::onto;
  int root = 0;
  Stream* stream = nullptr;  // of this rank
};

// Checks the arguments and keeps them until the stream gets there; no allocation after construction.
class QueuedCommunicator : public Communicator {
 public:
  QueuedCommunicator();
  void all_gather(const void* shard, void* full, int64_t shard_bytes, Stream& stream) final;
  void reduce_scatter(const void* full, void* accumulator, int64_t shard_elements, DType dtype, int contributors, Fold fold,
                      Stream& stream) final;
  void all_reduce(void* data, int64_t elements, DType dtype, Stream& stream) final;
  void broadcast(void* data, int64_t bytes, int root, Stream& stream) final;
  void barrier(Stream& stream) final;

 protected:
  // On the stream's thread; returns when the rank's buffers are its own again.
  virtual void carry_out(const CollectiveCall& call) = 0;

 private:
  struct Record {
    QueuedCommunicator* self = nullptr;
    CollectiveCall call;
  };
  void issue(const CollectiveCall& call, Stream& stream);

  std::vector<Record> records_;
  uint64_t issued_ = 0;
};

}  // namespace zeroplan
