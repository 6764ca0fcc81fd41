#include "runtime/mpi/mpi_requests.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

constexpr int64_t kPart = int64_t{1} << 30;  // bytes
constexpr int kTag = 0;                      // order alone tells the messages of one pair of ranks apart

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(fmt::format("{} failed: {}", call, text));
}

void MpiRequests::send(const void* from, int64_t bytes, int peer) {
  for (int64_t at = 0; at < bytes; at += kPart) {
    const int count = static_cast<int>(std::min(kPart, bytes - at));
    requests_.push_back(MPI_REQUEST_NULL);
    peers_.push_back(peer);
    check_mpi(MPI_Isend(static_cast<const char*>(from) + at, count, MPI_BYTE, peer, kTag, comm_, &requests_.back()), "MPI_Isend");
  }
}

void MpiRequests::receive(void* to, int64_t bytes, int peer) {
  for (int64_t at = 0; at < bytes; at += kPart) {
    const int count = static_cast<int>(std::min(kPart, bytes - at));
    requests_.push_back(MPI_REQUEST_NULL);
    peers_.push_back(peer);
    check_mpi(MPI_Irecv(static_cast<char*>(to) + at, count, MPI_BYTE, peer, kTag, comm_, &requests_.back()), "MPI_Irecv");
  }
}

bool MpiRequests::done() {
  int flag = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, MPI_STATUSES_IGNORE), "MPI_Testall");
  return flag != 0;
}

bool MpiRequests::done_with(int peer) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (peers_[i] != peer || requests_[i] == MPI_REQUEST_NULL) continue;
    int flag = 0;
    check_mpi(MPI_Test(&requests_[i], &flag, MPI_STATUS_IGNORE), "MPI_Test");
    if (flag == 0) return false;
  }
  return true;
}

std::vector<int> MpiRequests::missing() const {
  std::vector<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i)
    if (requests_[i] != MPI_REQUEST_NULL) ranks.push_back(peers_[i]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiRequests::clear() {
  requests_.clear();
  peers_.clear();
}

}  // namespace zeroplan
