#include "runtime/mpi/mpi_job.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "runtime/mpi/mpi_communicator.h"
#include "runtime/mpi/mpi_state.h"

namespace zeroplan {
namespace {

constexpr auto kSpeech = std::chrono::seconds(5);  // for the rank that speaks to end all
constexpr std::chrono::milliseconds kForever(0);
constexpr int kPings = 16;

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool same_words(const Notice& a, const Notice& b) { return a.fate == b.fate && a.words == b.words; }

class OpenMpiJob : public MpiJob {
 public:
  OpenMpiJob() : state_(std::make_shared<MpiState>()), requests_(state_->new_comm()) {}

  int rank() const override { return state_->rank(); }
  int size() const override { return state_->size(); }
  std::unique_ptr<Communicator> new_communicator(std::chrono::milliseconds deadline, int64_t slot_bytes) override {
    return std::make_unique<MpiCommunicator>(state_, deadline, slot_bytes);
  }
  void meet() override {
    gather("");
    broadcast("");
  }
  void listen() override { state_->throw_if_stopped(); }
  void tell(const std::string& words) override { stop(words, true); }
  std::string broadcast(const std::string& bytes) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  std::vector<int64_t> clock_offsets() override;
  std::vector<std::string> last_words(const std::string& words, bool names_rank) override;
  void end_all(int code) override;

 private:
  // What is under way points into the caller's memory: where it will not come, this is the end.
  void finish_messages() {
    try {
      state_->wait(requests_, kForever);
    } catch (const Error& error) {
      stop(error.what(), false);
      throw;
    }
    requests_.clear();
  }
  void stop(const std::string& words, bool names_rank) {
    state_->stop({state_->missed() ? Fate::missed : Fate::failed, names_rank, words});
  }
  int64_t offset_of(int peer);

  std::shared_ptr<MpiState> state_;  // shared with the communicators
  MpiRequests requests_;
  bool speaks_ = true;
};

std::string OpenMpiJob::broadcast(const std::string& bytes) {
  std::string out = bytes;
  int64_t count = static_cast<int64_t>(bytes.size());
  const auto from_first = [&](void* data, int64_t n) {
    if (rank() > 0) requests_.receive(data, n, 0);
    for (int peer = 1; rank() == 0 && peer < size(); ++peer) requests_.send(data, n, peer);
    finish_messages();
  };
  from_first(&count, sizeof count);
  out.resize(static_cast<size_t>(count));
  from_first(out.data(), count);
  return out;
}

std::vector<std::string> OpenMpiJob::gather(const std::string& bytes) {
  std::vector<std::string> out(rank() == 0 ? size() : 0);
  std::vector<int64_t> counts(size(), static_cast<int64_t>(bytes.size()));
  if (rank() > 0) requests_.send(&counts[rank()], sizeof(int64_t), 0);
  for (int peer = 1; rank() == 0 && peer < size(); ++peer) requests_.receive(&counts[peer], sizeof(int64_t), peer);
  finish_messages();
  if (rank() > 0) requests_.send(bytes.data(), counts[rank()], 0);
  if (rank() == 0) out[0] = bytes;
  for (int peer = 1; rank() == 0 && peer < size(); ++peer) {
    out[peer].resize(static_cast<size_t>(counts[peer]));
    requests_.receive(out[peer].data(), counts[peer], peer);
  }
  finish_messages();
  return out;
}

// A peer's clock is read halfway between question and answer; the quickest answer counts.
int64_t OpenMpiJob::offset_of(int peer) {
  int64_t quickest = INT64_MAX, offset = 0;
  for (int i = 0; i < kPings; ++i) {
    int64_t there = 0;
    const int64_t asked = steady_ns();
    requests_.send(&asked, sizeof asked, peer);
    requests_.receive(&there, sizeof there, peer);
    finish_messages();
    const int64_t answered = steady_ns();
    if (answered - asked >= quickest) continue;
    quickest = answered - asked;
    offset = there - (asked + answered) / 2;
  }
  return offset;
}

std::vector<int64_t> OpenMpiJob::clock_offsets() {
  std::vector<int64_t> offsets(rank() == 0 ? size() : 0);
  if (rank() == 0) {
    for (int peer = 1; peer < size(); ++peer)
      if (!state_->on_this_machine(peer)) offsets[peer] = offset_of(peer);
  } else if (!state_->on_this_machine(0)) {
    for (int i = 0; i < kPings; ++i) {
      int64_t asked = 0;
      requests_.receive(&asked, sizeof asked, 0);
      finish_messages();
      const int64_t now = steady_ns();
      requests_.send(&now, sizeof now, 0);
      finish_messages();
    }
  }
  return offsets;
}

std::vector<std::string> OpenMpiJob::last_words(const std::string& words, bool names_rank) {
  stop(words, names_rank);
  const auto speaks_before = [](const Notice& a, const Notice& b) { return a.fate > b.fate; };
  std::vector<Notice> all = state_->notices();
  speaks_ = std::min_element(all.begin(), all.end(), speaks_before) - all.begin() == rank();  // the lowest of those with the most to say
  if (!speaks_) return {};
  all[rank()].words = words;
  all[rank()].names_rank = names_rank;
  // What all say alike is no matter of one rank.
  const bool alike = std::all_of(all.begin(), all.end(), [&](const Notice& n) { return same_words(n, all[rank()]); });
  std::vector<std::string> lines;
  const auto add = [&](int r) {
    lines.push_back(alike || all[r].names_rank ? all[r].words : fmt::format("{} (rank {})", all[r].words, r));
  };
  for (int r = 0; r < size(); ++r)
    if (r != rank() && all[r].fate == Fate::failed && !same_words(all[r], all[rank()])) add(r);
  add(rank());
  return lines;
}

void OpenMpiJob::end_all(int code) {
  if (!speaks_) std::this_thread::sleep_for(kSpeech);
  for (;;) {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::this_thread::sleep_for(kSpeech);
  }
}

}  // namespace

std::unique_ptr<MpiJob> start_mpi() { return std::make_unique<OpenMpiJob>(); }

}  // namespace zeroplan
