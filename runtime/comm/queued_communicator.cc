#include "runtime/comm/queued_communicator.h"

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/comm/fold.h"

namespace zeroplan {
namespace {

constexpr int kRecords = 2 * kStreamCapacity;

}  // namespace

const char* call_kind_name(CallKind kind) {
  switch (kind) {
    case CallKind::all_gather: return "all_gather";
    case CallKind::reduce_scatter: return "reduce_scatter";
    case CallKind::all_reduce: return "all_reduce";
    case CallKind::broadcast: return "broadcast";
    case CallKind::barrier: break;
  }
  return "barrier";
}

QueuedCommunicator::QueuedCommunicator() : records_(kRecords) {}

void QueuedCommunicator::all_gather(const void* shard, void* full, int64_t bytes, Stream& stream) {
  issue({.kind = CallKind::all_gather, .data = const_cast<void*>(shard), .own = full, .count = bytes}, stream);
}

void QueuedCommunicator::reduce_scatter(const void* full, void* accumulator, int64_t elements, DType dtype, int contributors, Fold fold,
                                        Stream& stream) {
  if (contributors < 0 || contributors > size())
    throw Error(fmt::format("reduce_scatter with {} contributors in a group of {} ranks", contributors, size()));
  require_foldable(dtype);
  issue({.kind = CallKind::reduce_scatter,
         .data = const_cast<void*>(full),
         .own = accumulator,
         .count = elements,
         .dtype = dtype,
         .contributors = contributors,
         .fold = fold},
        stream);
}

void QueuedCommunicator::all_reduce(void* data, int64_t elements, DType dtype, Stream& stream) {
  require_summable(dtype);
  issue({.kind = CallKind::all_reduce, .data = data, .count = elements, .dtype = dtype}, stream);
}

void QueuedCommunicator::broadcast(void* data, int64_t bytes, int root, Stream& stream) {
  if (root < 0 || root >= size()) throw Error(fmt::format("broadcast from rank {} in a group of {} ranks", root, size()));
  issue({.kind = CallKind::broadcast, .data = data, .count = bytes, .root = root}, stream);
}

void QueuedCommunicator::barrier(Stream& stream) { issue({.kind = CallKind::barrier}, stream); }

// Records live until they are carried out: a stream holds fewer commands than there are records.
void QueuedCommunicator::issue(const CollectiveCall& call, Stream& stream) {
  Record& record = records_[issued_++ % kRecords];
  record = {this, call};
  record.call.stream = &stream;
  stream.launch([](void* p) { static_cast<Record*>(p)->self->carry_out(static_cast<Record*>(p)->call); }, &record);
}

}  // namespace zeroplan
