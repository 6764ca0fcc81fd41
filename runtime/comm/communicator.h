#pragma once
// Collectives among the ranks of one group. Gathers and reductions use separate communicators; each is used from one stream.
// All ranks call the same operations in the same order, with the same sizes: the plan sees to that. The local one compares them too.
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "runtime/device/device.h"

namespace zeroplan {

// A collective that some ranks did not join before its deadline.
class MissingPeers : public Error {
 public:
  MissingPeers(std::string message, std::vector<int> ranks) : Error(std::move(message)), ranks_(std::move(ranks)) {}
  const std::vector<int>& ranks() const { return ranks_; }

 private:
  std::vector<int> ranks_;
};

// A failure of a rank in another process, in that rank's words.
class PeerFailure : public Error {
 public:
  using Error::Error;
};

// What a reduce_scatter adds to.
enum class Fold : uint8_t {
  onto,       // what the accumulator holds
  from_zero,  // +0, whatever it holds: the same bits as onto an accumulator of zeros
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // full[r * bytes …] = shard of rank r. `shard` may be the rank's own part of `full`. NCCL: ncclAllGather.
  virtual void all_gather(const void* shard, void* full, int64_t shard_bytes, Stream& stream) = 0;
  // Ordered fold of the own shard: accumulator = ((accumulator + full of rank 0) + full of rank 1) + … over the first `contributors`
  // ranks, element by element, no fused multiply-add. `full` holds size() × shard_elements elements of `dtype`, the accumulator elements of
  // wide_dtype(dtype): f16 and bf16 are added up in f32. It is written also without contributors.
  virtual void reduce_scatter(const void* full, void* accumulator, int64_t shard_elements, DType dtype, int contributors, Fold fold,
                              Stream& stream) = 0;
  // data = sum over ranks in rank order, on every rank. f32, f64 or i64.
  virtual void all_reduce(void* data, int64_t elements, DType dtype, Stream& stream) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root, Stream& stream) = 0;
  virtual void barrier(Stream& stream) = 0;
  // That collectives will read and write these bytes: registered with what moves them, until the handle's end, which comes first. Null:
  // nothing was registered, and nothing has to be.
  virtual std::shared_ptr<void> share(void*, int64_t) { return nullptr; }
  // Where operations go on after they were issued: called, on a thread of the communicator, with what an operation fails with, while the
  // stream still stands at it, and before anything is aborted. Null: nobody. When this returns, the former one is called no more.
  virtual void watch(std::function<void(std::exception_ptr)>) {}
  // Ends every pending and later operation of all ranks with `reason`. Safe from any thread; the first reason wins.
  virtual void abort(const std::string& reason) = 0;
};

// Communicators of n ranks that are threads of this process, index = rank. An operation that a peer does not join within `deadline`
// fails, naming the missing ranks.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int n, std::chrono::milliseconds deadline);

}  // namespace zeroplan
