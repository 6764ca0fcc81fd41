// Barriers and warp exchanges: who waits, when all have come, and what to say
// when they never will.
#include <algorithm>
#include <bit>
#include <map>

#include "simt/block_runner.h"

namespace cuda_host::simt {

namespace {

std::string place(const Site& site) {
  std::string file = site.file_name();
  const auto slash = file.rfind('/');
  if (slash != std::string::npos) file.erase(0, slash + 1);
  return file + ":" + std::to_string(site.line());
}

bool same_site(const Site& a, const Site& b) { return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name(); }

// Ascending numbers as "0-31,40".
std::string ranges(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end > i) text += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace

int BlockRunner::block_barrier(BlockOp op, int predicate, const char* name, const Site& site) {
  Thread& self = threads_[current_];
  self.state = State::AtBlock;
  self.block_op = op;
  self.predicate = predicate;
  self.waits_for = name;
  self.site = site;
  ++at_block_;
  sanitizer_release(&block_meeting_.arrive);
  if (at_block_ == count_) {
    check_barrier_sites();
    if (!fault_.empty()) abandon();
    release_block();
  }
  leave(self.fiber->context);
  sanitizer_acquire(self.leave_token);
  return static_cast<int>(self.result);
}

void BlockRunner::check_barrier_sites() {
  const auto first = std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.state == State::AtBlock; });
  for (const Thread& t : threads_) {
    if (t.state == State::AtBlock && !same_site(t.site, first->site)) {
      note_fault("divergent barrier: " + describe_stall());
      return;
    }
  }
}

// Everything before the arrivals comes before everything after the departures.
void BlockRunner::complete(Meeting& meeting) {
  sanitizer_acquire(&meeting.arrive);
  ++meeting.count;
  sanitizer_release(leave_token(meeting));
}

void BlockRunner::release_block() {
  int sum = 0;
  unsigned waiting = 0;
  for (const Thread& t : threads_) {
    if (t.state != State::AtBlock) continue;
    ++waiting;
    sum += t.predicate != 0;
  }
  complete(block_meeting_);
  make_order();
  for (const std::uint16_t index : order_) {
    Thread& t = threads_[index];
    if (t.state != State::AtBlock) continue;
    t.state = State::Ready;
    t.leave_token = leave_token(block_meeting_);
    t.result = static_cast<std::uint64_t>(t.block_op == BlockOp::Count ? sum
                                          : t.block_op == BlockOp::And ? sum == static_cast<int>(waiting)
                                                                       : sum > 0);
    ready_.push_back(index);
  }
  at_block_ = 0;
}

unsigned BlockRunner::existing_lanes(unsigned warp) const {
  const unsigned lanes = std::min(32U, count_ - warp * 32U);
  return lanes == 32U ? 0xFFFFFFFFU : (1U << lanes) - 1U;
}

std::uint64_t BlockRunner::warp_exchange(const WarpRequest& request, const char* name, const Site& site) {
  const unsigned warp = current_ / 32U;
  const unsigned lane = current_ % 32U;
  Thread& self = threads_[current_];
  self.request = request;
  self.waits_for = name;
  self.site = site;
  if ((request.mask >> lane & 1U) == 0) {
    note_fault(std::string(name) + " at " + place(site) + ": the mask lacks the calling lane" + where());
    abandon();
  }
  self.state = State::AtWarp;
  warp_waiting_[warp] |= 1U << lane;
  sanitizer_release(&warp_meetings_[warp].arrive);
  // Lanes that never existed cannot be waited for; the hardware ignores them too.
  const unsigned needed = request.mask & existing_lanes(warp);
  if ((warp_waiting_[warp] & needed) == needed) {
    release_warp(warp, needed, current_);
    if (!fault_.empty()) abandon();
  } else {
    leave(self.fiber->context);
  }
  sanitizer_acquire(self.leave_token);
  return self.result;
}

// Lanes may meet at different __syncwarp calls, but an exchange needs one call.
void BlockRunner::check_warp_sites(unsigned warp, unsigned lanes) {
  const Thread* first = nullptr;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const Thread& t = threads_[warp * 32U + static_cast<unsigned>(std::countr_zero(rest))];
    if (first == nullptr) first = &t;
    const bool differs = t.request.op != first->request.op || t.request.mask != first->request.mask ||
                         (t.request.op != WarpOp::Sync && !same_site(t.site, first->site));
    if (differs) note_fault("divergent warp operation: " + describe_stall());
  }
}

// `running` continues by itself; everybody else becomes ready.
void BlockRunner::release_warp(unsigned warp, unsigned lanes, unsigned running) {
  check_warp_sites(warp, lanes);
  if (!fault_.empty()) return;
  exchange(warp, lanes);
  complete(warp_meetings_[warp]);
  warp_waiting_[warp] &= ~lanes;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned t = warp * 32U + static_cast<unsigned>(std::countr_zero(rest));
    threads_[t].leave_token = leave_token(warp_meetings_[warp]);
    if (t == running) {
      threads_[t].state = State::Running;
    } else {
      threads_[t].state = State::Ready;
      ready_.push_back(static_cast<std::uint16_t>(t));
    }
  }
}

void BlockRunner::exchange(unsigned warp, unsigned lanes) {
  const unsigned base = warp * 32U;
  unsigned ballot = 0;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    ballot |= static_cast<unsigned>(threads_[base + lane].request.value != 0) << lane;
  }
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    Thread& t = threads_[base + static_cast<unsigned>(std::countr_zero(rest))];
    switch (t.request.op) {
      case WarpOp::Sync: break;
      case WarpOp::Ballot: t.result = ballot; break;
      case WarpOp::Any: t.result = ballot != 0; break;
      case WarpOp::All: t.result = ballot == lanes; break;
      case WarpOp::Shuffle: {
        const unsigned from = t.request.source_lane;
        // The value of a lane that does not take part is undefined: give a NaN pattern.
        t.result = from < 32U && (lanes >> from & 1U) != 0 ? threads_[base + from].request.value : ~std::uint64_t{0};
        break;
      }
      default: t.result = reduce(warp, lanes, t.request); break;
    }
  }
}

std::uint64_t BlockRunner::reduce(unsigned warp, unsigned lanes, const WarpRequest& request) const {
  std::uint64_t total = 0;
  bool first = true;
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t value = threads_[warp * 32U + lane].request.value;
    const auto as_signed = static_cast<std::int64_t>(value);
    const auto total_signed = static_cast<std::int64_t>(total);
    if (request.op == WarpOp::MatchAny) {
      total |= static_cast<std::uint64_t>(value == request.value) << lane;
      continue;
    }
    if (first) {
      total = value;
      first = false;
      continue;
    }
    switch (request.op) {
      case WarpOp::AddSigned: total += value; break;
      case WarpOp::MinSigned: total = as_signed < total_signed ? value : total; break;
      case WarpOp::MaxSigned: total = as_signed > total_signed ? value : total; break;
      case WarpOp::MinUnsigned: total = std::min(total, value); break;
      case WarpOp::MaxUnsigned: total = std::max(total, value); break;
      case WarpOp::And: total &= value; break;
      case WarpOp::Or: total |= value; break;
      default: total ^= value; break;
    }
  }
  return total;
}

// Nothing can run. Exited lanes complete a warp operation (CUDA asks only for
// the non-exited lanes of the mask); an exited thread completes a block barrier
// only when the settings allow it.
bool BlockRunner::resolve_stall() {
  bool progress = false;
  for (unsigned warp = 0; warp * 32U < count_; ++warp) {
    for (unsigned rest = warp_waiting_[warp]; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      unsigned needed = threads_[warp * 32U + lane].request.mask & existing_lanes(warp);
      for (unsigned l = 0; l < 32U; ++l) {
        const unsigned t = warp * 32U + l;
        if (t < count_ && threads_[t].state == State::Done) needed &= ~(1U << l);
      }
      if ((warp_waiting_[warp] & needed) == needed) {
        release_warp(warp, needed, ~0U);
        progress = true;
        break;
      }
    }
  }
  if (progress || at_block_ == 0) return progress;
  if (at_block_ + done_ == count_ && !work_->settings.strict_barriers) {
    check_barrier_sites();
    if (fault_.empty()) release_block();
    return true;
  }
  return false;
}

std::string BlockRunner::describe_wait(unsigned thread) const {
  const Thread& t = threads_[thread];
  if (t.state == State::Done) return "have exited";
  if (t.state == State::AtBlock || t.state == State::AtWarp) {
    return std::string("wait at ") + t.waits_for + " (" + place(t.site) + ")";
  }
  return "run";
}

std::string BlockRunner::describe_stall() const {
  std::map<std::string, std::vector<unsigned>> groups;
  std::string function;
  for (unsigned t = 0; t < count_; ++t) {
    groups[describe_wait(t)].push_back(t);
    if (function.empty() && *threads_[t].waits_for != '\0') function = threads_[t].site.function_name();
  }
  std::string text = "threads of block (" + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                     std::to_string(blockIdx.z) + ") do not meet:";
  for (const auto& [what, members] : groups) text += " threads " + ranges(members) + " " + what + ";";
  return text + " in " + function;
}

// The entry points that the headers call.

int block_barrier(BlockOp op, int predicate, const char* name, const Site& site) {
  return BlockRunner::active()->block_barrier(op, predicate, name, site);
}

std::uint64_t warp_exchange(WarpOp op, unsigned mask, std::uint64_t value, unsigned source_lane, const char* name, const Site& site) {
  return BlockRunner::active()->warp_exchange({op, mask, source_lane, value}, name, site);
}

void yield() { BlockRunner::active()->yield(); }

void spin_tick() {
  // Rare enough to cost nothing, often enough that a spin lock makes progress.
  constinit static thread_local unsigned ticks = 0;
  if ((++ticks & 4095U) == 0 && BlockRunner::active() != nullptr) yield();
}

void fault(const char* message, const Site& site) {
  BlockRunner* runner = BlockRunner::active();
  runner->note_fault(std::string(message) + " at " + place(site) + runner->where());
  runner->abandon();
}

void* dynamic_shared() { return BlockRunner::active()->dynamic_shared(); }
unsigned lane_id() { return BlockRunner::active()->current() % 32U; }
unsigned thread_rank() { return BlockRunner::active()->current(); }

}  // namespace cuda_host::simt

unsigned __activemask() {
  using cuda_host::simt::BlockRunner;
  BlockRunner* runner = BlockRunner::active();
  return runner->existing_lanes(runner->current() / 32U);
}
