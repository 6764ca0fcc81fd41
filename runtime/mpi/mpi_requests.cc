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

void MpiRequests::add(int peer, int received) {
  requests_.push_back(MPI_REQUEST_NULL);
  peers_.push_back(peer);
  expected_.push_back(received);
}

void MpiRequests::send(const void* from, int64_t bytes, int peer) {
  for (int64_t at = 0; at < bytes; at += kPart) {
    const int count = static_cast<int>(std::min(kPart, bytes - at));
    add(peer, -1);
    check_mpi(MPI_Isend(static_cast<const char*>(from) + at, count, MPI_BYTE, peer, kTag, comm_, &requests_.back()), "MPI_Isend");
  }
}

void MpiRequests::receive(void* to, int64_t bytes, int peer) {
  for (int64_t at = 0; at < bytes; at += kPart) {
    const int count = static_cast<int>(std::min(kPart, bytes - at));
    add(peer, count);
    check_mpi(MPI_Irecv(static_cast<char*>(to) + at, count, MPI_BYTE, peer, kTag, comm_, &requests_.back()), "MPI_Irecv");
  }
}

bool MpiRequests::test(size_t i) {
  if (requests_[i] == MPI_REQUEST_NULL) return true;
  int flag = 0, bytes = 0;
  MPI_Status status;
  check_mpi(MPI_Test(&requests_[i], &flag, &status), "MPI_Test");
  if (flag == 0) return false;
  if (expected_[i] < 0) return true;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (bytes != expected_[i])
    throw Error(
        fmt::format("rank {} sent {} bytes where {} were expected; all ranks must run the same plan", peers_[i], bytes, expected_[i]));
  return true;
}

bool MpiRequests::done() {
  bool all = true;
  for (size_t i = 0; i < requests_.size(); ++i) all = test(i) && all;
  return all;
}

bool MpiRequests::done_with(int peer) {
  bool all = true;
  for (size_t i = 0; i < requests_.size(); ++i) all = (peers_[i] != peer || test(i)) && all;
  return all;
}

std::vector<int> MpiRequests::missing() {
  std::vector<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i)
    if (!test(i)) ranks.push_back(peers_[i]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiRequests::clear() {
  requests_.clear();
  peers_.clear();
  expected_.clear();
}

}  // namespace zeroplan
