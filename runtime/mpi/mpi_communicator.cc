#include "runtime/mpi/mpi_communicator.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/comm/fold.h"

namespace zeroplan {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiState> state, std::chrono::milliseconds deadline, int64_t slot_bytes)
    : state_(std::move(state)),
      deadline_(deadline),
      comm_(state_->new_comm()),
      slot_bytes_(std::max(slot_bytes / kAlignment, int64_t{1}) * kAlignment),
      scratch_(std::make_unique<char[]>(static_cast<size_t>(slot_bytes_ * state_->size()))),
      requests_(comm_) {}

void MpiCommunicator::carry_out(const CollectiveCall& call) {
  try {
    switch (call.kind) {
      case CallKind::all_gather: gather(call); break;
      case CallKind::reduce_scatter: reduce(call); break;
      case CallKind::all_reduce: sum(call); break;
      case CallKind::broadcast: broadcast_from(call); break;
      case CallKind::barrier: meet(); break;
    }
  } catch (const MissingPeers& error) {
    throw MissingPeers(fmt::format("{}: {}", call_kind_name(call.kind), error.message()), error.ranks());
  }
}

void MpiCommunicator::wait(int peer) { state_->wait(requests_, deadline_, peer); }

void MpiCommunicator::gather(const CollectiveCall& call) {
  char* full = static_cast<char*>(call.own);
  requests_.clear();
  for (int k = 1; k < size(); ++k) {
    const int to = (rank() + k) % size(), from = (rank() + size() - k) % size();
    requests_.receive(full + from * call.count, call.count, from);
    requests_.send(call.data, call.count, to);
  }
  char* own = full + rank() * call.count;
  if (own != call.data && call.count > 0) std::memcpy(own, call.data, static_cast<size_t>(call.count));
  wait();
}

// Piece by piece: what fits the scratch of one peer.
void MpiCommunicator::reduce(const CollectiveCall& call) {
  const int64_t width = dtype_bytes(call.dtype), wide = dtype_bytes(wide_dtype(call.dtype)), piece = slot_bytes_ / width;
  const auto* full = static_cast<const char*>(call.data);
  for (int64_t first = 0; first < call.count; first += piece) {
    const int64_t n = std::min(piece, call.count - first);
    requests_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      if (peer < call.contributors) requests_.receive(slot(peer), n * width, peer);
      if (rank() < call.contributors) requests_.send(full + (peer * call.count + first) * width, n * width, peer);
    }
    char* to = static_cast<char*>(call.own) + first * wide;
    if (call.fold == Fold::from_zero) std::memset(to, 0, static_cast<size_t>(n * wide));
    for (int r = 0; r < call.contributors; ++r) {
      if (r != rank()) wait(r);
      add_in_place(to, r == rank() ? full + (r * call.count + first) * width : slot(r), n, call.dtype);
    }
    wait();
  }
}

// Each rank sums its part of the elements for all, in the order of the ranks, and hands it out.
void MpiCommunicator::sum(const CollectiveCall& call) {
  const int64_t width = dtype_bytes(call.dtype), part = (call.count + size() - 1) / size(), piece = slot_bytes_ / width;
  auto* data = static_cast<char*>(call.data);
  const auto start = [&](int r) { return std::min(r * part, call.count); };
  const auto count = [&](int r, int64_t first) { return std::clamp<int64_t>(std::min(part, call.count - start(r)) - first, 0, piece); };
  for (int64_t first = 0; first < part; first += piece) {
    const int64_t n = count(rank(), first);
    requests_.clear();
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      requests_.receive(slot(peer), n * width, peer);
      requests_.send(data + (start(peer) + first) * width, count(peer, first) * width, peer);
    }
    char* own = data + (start(rank()) + first) * width;
    wait();
    std::memcpy(slot(rank()), own, static_cast<size_t>(n * width));
    std::memcpy(own, slot(0), static_cast<size_t>(n * width));
    for (int r = 1; r < size(); ++r) add_in_place(own, slot(r), n, call.dtype);
  }
  requests_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const auto bytes = [&](int r) { return (std::min(start(r) + part, call.count) - start(r)) * width; };
    requests_.receive(data + start(peer) * width, bytes(peer), peer);
    requests_.send(data + start(rank()) * width, bytes(rank()), peer);
  }
  wait();
}

void MpiCommunicator::broadcast_from(const CollectiveCall& call) {
  requests_.clear();
  if (rank() != call.root)
    requests_.receive(call.data, call.count, call.root);
  else
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) requests_.send(call.data, call.count, peer);
  wait();
}

void MpiCommunicator::meet() {
  requests_.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    requests_.receive(slot(peer), 1, peer);
    requests_.send(slot(rank()), 1, peer);
  }
  wait();
}

}  // namespace zeroplan
