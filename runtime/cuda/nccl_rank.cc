#include "runtime/cuda/nccl_rank.h"

#include <fmt/format.h>

#include "kernels/cuda/errors.h"

namespace zeroplan {
namespace {

constexpr auto kPause = std::chrono::microseconds(50);
constexpr auto kFarewell = std::chrono::seconds(5);
constexpr auto kPeerCheck = std::chrono::milliseconds(50);

bool is_done(const CudaEvent& event, const char* what) {
  const cudaError_t status = cudaEventQuery(event.get());
  if (status == cudaErrorNotReady) return false;
  check_cuda(status, what);
  return true;
}

[[noreturn]] void fail(const char* call, ncclResult_t status, ncclComm_t comm) {
  const char* last = ncclGetLastError(comm);
  const std::string words = last == nullptr ? "" : last;
  throw Error(fmt::format("{} failed: {}{}{}", call, ncclGetErrorString(status), words.empty() ? "" : ": ", words));
}

}  // namespace

void check_nccl(ncclResult_t status, const char* call) {
  if (status != ncclSuccess && status != ncclInProgress) fail(call, status, nullptr);
}

NcclRank::NcclRank(int rank, std::shared_ptr<Device> device, LocalGroup& group, std::chrono::milliseconds deadline,
                   std::function<void()> check_peers)
    : rank_(rank), device_(std::move(device)), group_(group), deadline_(deadline), check_peers_(std::move(check_peers)) {
  device_->use();
  for (Pending& p : pending_) {
    p.begun = std::make_unique<CudaEvent>();
    p.done = std::make_unique<CudaEvent>();
  }
}

NcclRank::~NcclRank() {
  if (aborting_.joinable()) aborting_.join();
}

void NcclRank::require_live() {
  if (!ended_) return;
  group_.throw_if_ended();
  throw Error("the communicator has ended");
}

void NcclRank::settle(const char* name, ncclResult_t status) {
  const auto until = std::chrono::steady_clock::now() + deadline_;
  auto next_check = std::chrono::steady_clock::now() + kPeerCheck;
  while (status == ncclInProgress) {
    std::this_thread::sleep_for(kPause);
    if (check_peers_ && std::chrono::steady_clock::now() > next_check) {
      check_peers_();
      next_check = std::chrono::steady_clock::now() + kPeerCheck;
    }
    const std::lock_guard lock(mutex_);
    require_live();
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &status);
    if (asked != ncclSuccess) fail("ncclCommGetAsyncError", asked, comm_);
    if (status == ncclInProgress && std::chrono::steady_clock::now() > until)
      throw MissingPeers(fmt::format("{} did not end within {} ms: some rank has not come; rank {} waited", name, deadline_.count(), rank_),
                         {});
  }
  if (status == ncclSuccess) return;
  const std::lock_guard lock(mutex_);
  require_live();
  fail(name, status, comm_);
}

std::shared_ptr<void> NcclRank::share(void* data, int64_t bytes) {
  void* handle = nullptr;
  call("ncclCommRegister", [&](ncclComm_t comm) { return ncclCommRegister(comm, data, static_cast<size_t>(bytes), &handle); });
  return {handle, [self = shared_from_this()](void* h) {
            const std::lock_guard lock(self->mutex_);
            if (h != nullptr && !self->ended_) ncclCommDeregister(self->comm_, h);
          }};
}

void NcclRank::begin(const CollectiveCall& call) {
  auto& stream = static_cast<CudaStream&>(*call.stream);
  for (;; std::this_thread::sleep_for(kPause)) {
    const std::lock_guard lock(mutex_);
    require_live();
    forget_done();
    if (issued_ - done_ == kPending) continue;
    if (stream_ != stream.error())
      stream.check_by([self = weak_from_this()] {
        if (const auto rank = self.lock()) rank->check();
      });
    stream_ = stream.error();
    Pending& p = at(issued_);
    p.call = call;
    p.since.reset();
    return check_cuda(cudaEventRecord(p.begun->get(), static_cast<cudaStream_t>(stream.native())), "cudaEventRecord");
  }
}

void NcclRank::issued() {
  const std::lock_guard lock(mutex_);
  require_live();
  const Pending& p = at(issued_);
  check_cuda(cudaEventRecord(p.done->get(), static_cast<cudaStream_t>(p.call.stream->native())), "cudaEventRecord");
  ++issued_;
}

void NcclRank::forget_done() {
  while (done_ < issued_ && is_done(*at(done_).done, "the device, in a collective,")) ++done_;
}

bool NcclRank::pending() {
  const std::lock_guard lock(mutex_);
  return done_ < issued_;
}

void NcclRank::require_well(const CollectiveCall& call) {
  ncclResult_t status = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &status);
  if (asked != ncclSuccess) fail("ncclCommGetAsyncError", asked, comm_);
  if (status != ncclSuccess && status != ncclInProgress) fail(fmt::format("{} by NCCL", describe(call)).c_str(), status, comm_);
}

// NCCL may end an operation that has failed.
void NcclRank::check() {
  const std::lock_guard lock(mutex_);
  if (!ended_ && issued_ > 0) require_well(at(issued_ - 1).call);
}

std::optional<NcclRank::Late> NcclRank::look() {
  const std::lock_guard lock(mutex_);
  if (ended_ || done_ == issued_) return std::nullopt;
  require_well(at(done_).call);
  forget_done();
  if (done_ == issued_) return std::nullopt;
  Pending& p = at(done_);
  const auto now = std::chrono::steady_clock::now();
  if (!p.since && is_done(*p.begun, "the device, before a collective,")) p.since = now;
  if (!p.since || now - *p.since < deadline_) return std::nullopt;
  return Late{done_, p.call};
}

bool NcclRank::has_come_to(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (done_ != number) return done_ > number;
  return number < issued_ && cudaEventQuery(at(number).begun->get()) == cudaSuccess;
}

void NcclRank::fail_stream(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  if (stream_) stream_->keep(error);
}

void NcclRank::end(const std::exception_ptr& why) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  if (stream_ && done_ < issued_) stream_->keep(why);
  if (comm_ == nullptr) return;
  aborting_ = std::thread([device = device_, comm = comm_] {
    try {
      device->use();
    } catch (const Error&) {  // the device is lost: NCCL has still to end its own threads
    }
    ncclCommAbort(comm);
  });
}

void NcclRank::finalize() {
  const std::lock_guard lock(mutex_);
  if (!ended_ && comm_ != nullptr) ncclCommFinalize(comm_);
}

void NcclRank::destroy() {
  const std::lock_guard lock(mutex_);
  if (ended_ || comm_ == nullptr) return;
  ended_ = true;
  ncclResult_t status = ncclInProgress;
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  while (ncclCommGetAsyncError(comm_, &status) == ncclSuccess && status == ncclInProgress && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kPause);
  status == ncclSuccess ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
}

}  // namespace zeroplan
