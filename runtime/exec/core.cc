// Starting the ranks, handing out jobs, and the one failure that ends them all.
#include "runtime/exec/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

std::vector<std::vector<UnitExtent>> unit_extents(const Plan& plan) {
  std::vector<std::vector<UnitExtent>> out;
  for (const PlanUnit& unit : plan.units) {
    auto& extents = out.emplace_back();
    for (const UnitParameter& p : unit.parameters) extents.push_back({p.offset, p.elements, 1.0});
  }
  return out;
}

}  // namespace

Core::Core(std::vector<std::shared_ptr<const Plan>> plans, const WeightReader& weights, ExecutorOptions opts)
    : options(std::move(opts)), read_weights(weights), plans_(std::move(plans)), plan_(plans_[0].get()) {
  if (!options.backend) options.backend = make_cpu_backend;
  backend_ = options.backend(plan(), std::chrono::milliseconds(options.collective_deadline_ms));
  if (plans_.size() == 1) plans_.resize(backend_.ranks.size(), plans_[0]);
  require_equal_plans(plans_, backend_.ranks);
  digest_ = common_digest(plan());
  extents = unit_extents(plan());
  for (const RankBackend& own : backend_.ranks) {
    auto& rank = ranks_.emplace_back(std::make_unique<Rank>());
    rank->core = this;
    rank->index = own.rank;
    rank->plan = plans_[ranks_.size() - 1].get();
    prepare_rank(*rank, own, backend_);
  }
  watch_collectives();
}

// The communicators outlive the ranks.
Core::~Core() {
  for (const RankBackend& own : backend_.ranks) {
    own.gather->watch(nullptr);
    own.reduce->watch(nullptr);
  }
}

// Who learns of a failure while the stream stands at it knows the step.
void Core::watch_collectives() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto fail_at = [this, rank = ranks_[i].get()](StreamKind kind) {
      return [this, rank, kind](std::exception_ptr error) {
        const PreparedStep* at = rank->active(rank->lanes[static_cast<int>(kind)]);
        fail(at == nullptr ? ErrorContext{.rank = rank->index} : place_of(*at), std::move(error));
      };
    };
    backend_.ranks[i].gather->watch(fail_at(StreamKind::gather));
    backend_.ranks[i].reduce->watch(fail_at(StreamKind::reduce));
  }
}

int64_t Core::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
}

void Core::run(const Job& job) {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  job_ = job;
  done_ = 0;
  ++jobs_;
  posted_.notify_all();
  const auto all_done = [&] { return done_ == local_ranks(); };
  finished_.wait(lock, [&] { return all_done() || failure_; });
  // The others stop at their next step. One that is stuck in foreign code is not waited for.
  const std::chrono::milliseconds grace(std::clamp<int64_t>(options.collective_deadline_ms, 500, 10000));
  if (!all_done()) finished_.wait_for(lock, grace, all_done);
  if (failure_) std::rethrow_exception(failure_);
}

void Core::serve(Rank& rank) {
  for (uint64_t seen = 0;;) {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, [&] { return jobs_ != seen; });
    seen = jobs_;
    const Job job = job_;
    lock.unlock();
    if (job.kind != Job::Kind::close) work(rank, job);
    lock.lock();
    ++(job.kind == Job::Kind::close ? exited_ : done_);
    finished_.notify_all();
    if (job.kind == Job::Kind::close) return;
  }
}

void Core::work(Rank& rank, const Job& job) {
  try {
    if (failed()) return;
    rank.device->use();
    switch (job.kind) {
      case Job::Kind::load:
        compare_plans(rank, digest_);
        load_constants(rank);
        run_program(rank, Program::load, false, plan().header.ranks);
        break;
      case Job::Kind::program: run_program(rank, job.program, false, plan().header.ranks); break;
      case Job::Kind::close: break;
      default: run_window(rank, job); break;
    }
  } catch (const Stopped&) {
  } catch (...) {
    fail({.rank = rank.index}, std::current_exception());
  }
}

bool Core::wait_for_exit(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  job_ = {.kind = Job::Kind::close};
  ++jobs_;
  posted_.notify_all();
  return finished_.wait_for(lock, limit, [&] { return exited_ == local_ranks(); });
}

void Core::throw_if_failed() {
  std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

Rank& Core::rank_at(int number) {
  for (const auto& rank : ranks_)
    if (rank->index == number) return *rank;
  throw Error(fmt::format("rank {} is in another process: gradients can be read where all ranks are in one", number));
}

std::string Core::where_is(int r) const {
  const auto local = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& rank) { return rank->index == r; });
  if (local == ranks_.end()) return "";
  for (const Lane& lane : (*local)->lanes) {
    const PreparedStep* s = (*local)->active(lane);
    if (s == nullptr) continue;
    return fmt::format("rank {} is in {} step {} ({})", r, program_name(s->program), s->index, describe_step(plan(), *s->step));
  }
  return fmt::format("rank {} is between steps or reads data", r);
}

std::string Core::reason_of(std::exception_ptr error) const {
  try {
    std::rethrow_exception(error);
  } catch (const MissingPeers& e) {
    std::string text = e.message();
    for (int r : e.ranks())
      if (const std::string place = where_is(r); !place.empty()) text += "; " + place;
    return text;
  } catch (const Error& e) {
    return e.message();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void Core::fail(const ErrorContext& where, std::exception_ptr error) {
  const std::string reason = reason_of(error);
  std::string what;
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    ErrorContext known;
    try {
      std::rethrow_exception(error);
    } catch (const PeerFailure&) {
      failure_ = error;
    } catch (const Error& e) {
      known = e.context();
    } catch (...) {
    }
    const Error own = Error(reason, known).within(where);
    if (!failure_) failure_ = std::make_exception_ptr(own);
    what = own.what();
    failed_.store(true, std::memory_order_release);
  }
  for (RankBackend& rank : backend_.ranks) {
    rank.gather->abort(what);
    rank.reduce->abort(what);
  }
  finished_.notify_all();
}

}  // namespace zeroplan
