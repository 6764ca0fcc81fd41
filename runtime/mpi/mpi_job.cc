#include "runtime/mpi/mpi_job.h"

#include <thread>

#include <fmt/format.h>

#include "runtime/mpi/mpi_communicator.h"
#include "runtime/mpi/mpi_state.h"

namespace zeroplan {
namespace {

constexpr int kAbortTag = 1;
constexpr int64_t kLongestReason = 3500;                     // bytes: sent at once, without the receiver's doing
constexpr auto kFarewell = std::chrono::milliseconds(1000);  // for the reason to get out

}  // namespace

MpiState::MpiState() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  if (level < MPI_THREAD_MULTIPLE)
    throw Error("this MPI library takes calls from one thread at a time only; use one built with MPI_THREAD_MULTIPLE");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  control_ = new_comm();
}

// A job that failed is ended by its launcher, which sees this process end without MPI_Finalize.
MpiState::~MpiState() {
  if (!aborted_) MPI_Finalize();
}

MPI_Comm MpiState::new_comm() {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

void MpiState::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  reason_ = reason.substr(0, kLongestReason);
  aborted_ = true;
  std::vector<MPI_Request> sends(size_, MPI_REQUEST_NULL);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) MPI_Isend(reason_.data(), static_cast<int>(reason_.size()), MPI_BYTE, peer, kAbortTag, control_, &sends[peer]);
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  for (int sent = 0; sent == 0 && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    MPI_Testall(size_, sends.data(), &sent, MPI_STATUSES_IGNORE);
}

void MpiState::throw_if_aborted() {
  const std::lock_guard lock(mutex_);
  if (!aborted_) {
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, control_, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    reason_.resize(bytes);
    check_mpi(MPI_Recv(reason_.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kAbortTag, control_, MPI_STATUS_IGNORE), "MPI_Recv");
    aborted_ = true;
  }
  throw PeerFailure(reason_);
}

MpiJob::MpiJob() : state_(std::make_shared<MpiState>()) {}
MpiJob::~MpiJob() = default;
int MpiJob::rank() const { return state_->rank(); }
int MpiJob::size() const { return state_->size(); }

std::unique_ptr<Communicator> MpiJob::new_communicator(std::chrono::milliseconds deadline, int64_t scratch) {
  return std::make_unique<MpiCommunicator>(state_, deadline, scratch);
}

}  // namespace zeroplan
