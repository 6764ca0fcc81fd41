#include "passes/lower/assign_streams.h"

#include <algorithm>
#include <map>

#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

using Clock = std::array<int, kStreams>;  // by stream: the last step that is over, -1 for none

// Bytes of an arena with the same history.
struct Segment {
  int64_t end = 0;
  int writer = -1;
  Clock readers = {-1, -1, -1};
};

// Bytes of the tensor in its arena, whatever the rank.
struct Bytes {
  int64_t begin = 0, end = 0;
};

Bytes bytes_of(const Plan& plan, const PlanTensor& tensor) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return {};
    const int64_t reach = (tensor.shape[i] - 1) * tensor.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = dtype_bytes(tensor.dtype);
  const int64_t other_ranks = tensor.per_rank ? (plan.header.ranks - 1) * plan.units[tensor.unit].shard_elements * size : 0;
  return {tensor.offset + low * size, tensor.offset + (high + 1) * size + other_ranks};
}

class History {
 public:
  // Segments that exactly cover [bytes.begin, bytes.end).
  template <typename Fn>
  void visit(Bytes bytes, Fn fn) {
    split(bytes.begin);
    split(bytes.end);
    int64_t at = bytes.begin;
    while (at < bytes.end) {
      auto it = segments_.lower_bound(at);
      if (it == segments_.end() || it->first > at) {
        const int64_t end = it == segments_.end() ? bytes.end : std::min(bytes.end, it->first);
        it = segments_.emplace(at, Segment{end}).first;
      }
      fn(it->second);
      at = it->second.end;
    }
  }

  // What was known of the bytes is replaced: they have one writer and no reader yet.
  void overwrite(Bytes bytes, int writer) {
    split(bytes.begin);
    split(bytes.end);
    segments_.erase(segments_.lower_bound(bytes.begin), segments_.lower_bound(bytes.end));
    segments_[bytes.begin] = {bytes.end, writer, {-1, -1, -1}};
  }

 private:
  void split(int64_t at) {
    auto it = segments_.upper_bound(at);
    if (it == segments_.begin()) return;
    --it;
    if (it->first >= at || it->second.end <= at) return;
    Segment right = it->second;
    it->second.end = at;
    segments_.emplace(at, right);
  }

  std::map<int64_t, Segment> segments_;
};

class Waiter {
 public:
  Waiter(const Plan& plan, PlanProgram& program) : plan_(plan), program_(program) {
    for (Clock& clock : stream_) clock.fill(-1);
  }

  void run() {
    for (int i = 0; i < static_cast<int>(program_.steps.size()); ++i) {
      Clock needed = {-1, -1, -1};
      collect(program_.steps[i], needed);
      wait_for(i, needed);
      touch(program_.steps[i], i);
    }
  }

 private:
  int stream(int step) const { return static_cast<int>(program_.steps[step].stream); }

  template <typename Fn>
  void reads(const Step& step, Fn fn) {
    for (const Operand& o : step.inputs) visit(o, fn);
  }

  template <typename Fn>
  void writes(const Step& step, Fn fn) {
    for (const Operand& o : step.outputs) visit(o, fn);
    visit(step.workspace, fn);
  }

  template <typename Fn>
  void visit(const Operand& o, Fn fn) {
    if (o.tensor == kNone) return;
    const Bytes bytes = bytes_of(plan_, plan_.tensors[o.tensor]);
    if (bytes.begin < bytes.end) fn(history_[static_cast<int>(plan_.tensors[o.tensor].arena)], bytes);
  }

  void collect(const Step& step, Clock& needed) {
    const auto after_writer = [&](const Segment& s) {
      if (s.writer >= 0) needed[stream(s.writer)] = std::max(needed[stream(s.writer)], s.writer);
    };
    reads(step, [&](History& history, Bytes bytes) { history.visit(bytes, after_writer); });
    writes(step, [&](History& history, Bytes bytes) {
      history.visit(bytes, [&](const Segment& s) {
        after_writer(s);
        for (int k = 0; k < kStreams; ++k) needed[k] = std::max(needed[k], s.readers[k]);
      });
    });
  }

  void wait_for(int index, Clock needed) {
    Step& step = program_.steps[index];
    const int own = static_cast<int>(step.stream);
    Clock& known = stream_[own];
    for (int k = 0; k < kStreams; ++k)
      if (k == own || needed[k] <= known[k]) needed[k] = -1;
    for (int k = 0; k < kStreams; ++k) {
      if (needed[k] < 0) continue;
      for (int other = 0; other < kStreams; ++other)
        if (other != k && needed[other] >= 0 && finished_[needed[other]][k] >= needed[k]) needed[k] = -1;
    }
    for (int k = 0; k < kStreams; ++k) {
      if (needed[k] < 0) continue;
      step.waits.push_back(needed[k]);
      program_.steps[needed[k]].records = true;
      for (int other = 0; other < kStreams; ++other) known[other] = std::max(known[other], finished_[needed[k]][other]);
    }
    std::sort(step.waits.begin(), step.waits.end());
    known[own] = index;
    finished_.push_back(known);
  }

  void touch(const Step& step, int index) {
    const int own = static_cast<int>(step.stream);
    reads(step, [&](History& history, Bytes bytes) { history.visit(bytes, [&](Segment& s) { s.readers[own] = index; }); });
    writes(step, [&](History& history, Bytes bytes) { history.overwrite(bytes, index); });
  }

  const Plan& plan_;
  PlanProgram& program_;
  History history_[kArenas];
  std::array<Clock, kStreams> stream_;  // what a new step of the stream comes after
  std::vector<Clock> finished_;         // by step: what is over when it is, itself included
};

}  // namespace

StreamKind stream_of(OpKind op) {
  if (op == OpKind::gather_weights || op == OpKind::gather_gradient) return StreamKind::gather;
  if (op == OpKind::reduce_scatter || op == OpKind::all_reduce) return StreamKind::reduce;
  return StreamKind::compute;
}

void assign_waits(const Plan& plan, PlanProgram& program) { Waiter(plan, program).run(); }

}  // namespace zeroplan
