#include "runtime/plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/reserve.h"

namespace zeroplan {

std::pair<int64_t, int64_t> tensor_range(const Plan& plan, const PlanTensor& tensor, int rank) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return {tensor.offset, tensor.offset};
    const int64_t reach = checked_mul(tensor.shape[i] - 1, tensor.strides[i]);
    (reach < 0 ? low : high) = checked_add(reach < 0 ? low : high, reach);
  }
  const int64_t width = dtype_bytes(tensor.dtype);
  int64_t begin = checked_add(tensor.offset, checked_mul(low, width));
  int64_t end = checked_add(tensor.offset, checked_mul(checked_add(high, 1), width));
  if (tensor.per_rank && tensor.unit != kNone) {
    const int64_t shard = checked_mul(plan.units[tensor.unit].shard_elements, width);
    begin = checked_add(begin, checked_mul(shard, std::max(rank, 0)));
    end = checked_add(end, checked_mul(shard, rank < 0 ? plan.header.ranks - 1 : rank));
  }
  return {begin, end};
}

namespace {

// Storages by address; a new one takes the bytes of the ones below it.
class LiveMap {
 public:
  LiveMap(const Plan& plan, LiveBytes& out) : plan_(plan), out_(out) {}

  // At the program's start and end.
  void enter(const std::vector<Operand>& entry) {
    int64_t begin, end;
    index_ = -1;  // until some step needs it
    for (const Operand& o : entry)
      if (range(o, begin, end)) insert(o, begin, end, 0);
  }
  void leave(const std::vector<Operand>& exit, size_t steps) {
    index_ = static_cast<int>(steps) - 1;
    for (const Operand& o : exit) touch(o);
  }

  void step(const Step& step, int index) {
    index_ = index;
    for (const Operand& o : step.inputs) touch(o);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (is_in_place(step, static_cast<int>(i)))
        touch(step.outputs[i]);
      else if (step.op == OpKind::fill_padding)
        merge(step.outputs[i], step.inputs, 0);
      else
        write(step.outputs[i]);
    }
    if (step.kind == StepKind::reduce_scatter && step.inputs.size() > 1) merge(step.inputs[1], step.inputs, 2);
    write(step.workspace);
  }

 private:
  static bool is_in_place(const Step& step, int output) {
    return std::any_of(step.in_place.begin(), step.in_place.end(), [&](const auto& pair) { return pair.first == output; });
  }

  bool range(const Operand& o, int64_t& begin, int64_t& end) const {
    if (o.tensor == kNone || plan_.tensors[o.tensor].arena != Arena::transient) return false;
    std::tie(begin, end) = tensor_range(plan_, plan_.tensors[o.tensor]);
    return begin < end;
  }

  template <typename Fn>
  void overlapping(int64_t begin, int64_t end, Fn&& fn) {
    auto it = by_begin_.upper_bound(begin);
    if (it != by_begin_.begin() && std::prev(it)->second.first > begin) --it;
    for (; it != by_begin_.end() && it->first < end; ++it) fn(out_.storages[it->second.second]);
  }

  void touch(const Operand& o) {
    int64_t begin, end;
    if (range(o, begin, end)) overlapping(begin, end, [&](LiveStorage& s) { s.last = index_; });
  }

  void write(const Operand& o) {
    int64_t begin, end;
    if (!range(o, begin, end)) return;
    bool part = false;  // of a buffer that this step has opened already
    overlapping(begin, end, [&](LiveStorage& s) { part = part || (s.first == index_ && s.begin <= begin && end <= s.end); });
    if (!part) insert(o, begin, end, index_);
  }

  // The buffer has been there since the first of its parts.
  void merge(const Operand& whole, const std::vector<Operand>& parts, size_t first_part) {
    int64_t begin, end, part_begin, part_end;
    if (!range(whole, begin, end)) return;
    int first = index_;
    for (size_t i = first_part; i < parts.size(); ++i) {
      if (!range(parts[i], part_begin, part_end)) continue;
      overlapping(part_begin, part_end, [&](LiveStorage& s) {
        first = std::min(first, s.first);
        s.last = s.first - 1;  // replaced by the whole buffer
      });
    }
    insert(whole, begin, end, first);
  }

  void insert(const Operand& o, int64_t begin, int64_t end, int first) {
    erase(begin, end);
    by_begin_[begin] = {end, out_.storages.size()};
    out_.storages.push_back({o.tensor, plan_.tensors[o.tensor].kind, begin, end, first, index_});
  }

  void erase(int64_t begin, int64_t end) {
    auto it = by_begin_.upper_bound(begin);
    if (it != by_begin_.begin()) --it;
    while (it != by_begin_.end() && it->first < end) {
      const auto [old_begin, old] = *it;
      if (old.first <= begin) {
        ++it;
        continue;
      }
      it = by_begin_.erase(it);
      if (old_begin < begin) by_begin_[old_begin] = {begin, old.second};
      if (old.first > end) by_begin_[end] = {old.first, old.second};
    }
  }

  const Plan& plan_;
  LiveBytes& out_;
  int index_ = 0;
  std::map<int64_t, std::pair<int64_t, size_t>> by_begin_;  // begin -> (end, storage)
};

void find_peak(LiveBytes& live, size_t steps) {
  std::vector<int64_t> change(steps + 1, 0);
  for (const LiveStorage& s : live.storages) {
    if (s.last < s.first) continue;
    change[s.first] += round_up(s.bytes(), kArenaAlignment);
    change[s.last + 1] -= round_up(s.bytes(), kArenaAlignment);
  }
  int64_t sum = 0;
  for (size_t i = 0; i < steps; ++i) {
    sum += change[i];
    if (sum <= live.peak) continue;
    live.peak = sum;
    live.peak_step = static_cast<int>(i);
  }
  int64_t largest = -1;
  for (const LiveStorage& s : live.storages) {
    if (s.first > live.peak_step || s.last < live.peak_step || s.bytes() <= largest) continue;
    largest = s.bytes();
    live.peak_tensor = s.tensor;
  }
}

// Bytes of an arena that tensors of each kind cover, counted once.
std::map<TensorKind, int64_t> covered(const Plan& plan, Arena arena) {
  std::vector<std::tuple<int64_t, int64_t, TensorKind>> ranges;
  for (const PlanTensor& t : plan.tensors) {
    if (t.arena != arena) continue;
    const auto [begin, end] = tensor_range(plan, t);
    ranges.emplace_back(begin, -end, t.kind);
  }
  std::sort(ranges.begin(), ranges.end());
  std::map<TensorKind, int64_t> bytes;
  int64_t done = 0;
  for (const auto& [begin, minus_end, kind] : ranges) {
    bytes[kind] += std::max<int64_t>(0, -minus_end - std::max(begin, done));
    done = std::max(done, -minus_end);
  }
  return bytes;
}

struct Peak {
  const PlanProgram* program = nullptr;
  LiveBytes live;
};

Peak largest_peak(const Plan& plan) {
  Peak best;
  for (const PlanProgram& p : plan.programs) {
    LiveBytes live = live_bytes(plan, p);
    if (!best.program || live.peak > best.live.peak) best = {&p, std::move(live)};
  }
  return best;
}

void add_rows(std::vector<MemoryRow>& rows, Arena arena, const std::map<TensorKind, int64_t>& bytes,
              std::initializer_list<TensorKind> kinds, int64_t total) {
  int64_t sum = 0;
  for (TensorKind kind : kinds) {
    const auto it = bytes.find(kind);
    const int64_t n = it == bytes.end() ? 0 : it->second;
    rows.push_back({std::string(tensor_kind_name(kind)), arena, n});
    sum += n;
  }
  rows.push_back({arena == Arena::transient ? "alignment and placement loss" : "alignment loss", arena, total - sum});
}

std::vector<MemoryRow> rows_of(const Plan& plan, const Peak& peak) {
  std::map<TensorKind, int64_t> at_peak;
  for (const LiveStorage& s : peak.live.storages)
    if (s.first <= peak.live.peak_step && s.last >= peak.live.peak_step) at_peak[s.kind] += s.bytes();
  using K = TensorKind;
  std::vector<MemoryRow> rows;
  add_rows(rows, Arena::state, covered(plan, Arena::state), {K::weights, K::master, K::gradients, K::moments, K::constant, K::metrics},
           plan.arena_bytes[0]);
  add_rows(rows, Arena::transient, at_peak, {K::slot, K::reduce_buffer, K::activation, K::workspace, K::gradients}, plan.arena_bytes[1]);
  add_rows(rows, Arena::staging, covered(plan, Arena::staging), {K::input}, plan.arena_bytes[2]);
  return rows;
}

std::string reserve_row(const Plan& plan, Hosting hosting) {
  const Reserve reserve = find_reserve(plan, hosting);
  const bool alone = hosting == Hosting::processes;
  std::string out = fmt::format("  {:<41} {:>16}   at most: {} of code and heap{}, {} of threads and steps, {} of packing",
                                "reserve outside the arenas", reserve.per_rank(alone ? 1 : plan.header.ranks), reserve.code + reserve.heap,
                                alone ? "" : " over all ranks", reserve.threads + reserve.steps, reserve.packing);
  if (alone) out += fmt::format(", {} of messages and MPI", reserve.messages);
  out += '\n';
  if (reserve.device > 0)
    out += fmt::format("  {:<41} {:>16}   of reductions by NCCL, where ranks have a GPU each; beside what NCCL takes itself\n",
                       "receive buffers on the GPU", reserve.device);
  return out;
}

}  // namespace

LiveBytes live_bytes(const Plan& plan, const PlanProgram& program) {
  LiveBytes out;
  LiveMap map(plan, out);
  map.enter(program.entry);
  for (size_t i = 0; i < program.steps.size(); ++i) map.step(program.steps[i], static_cast<int>(i));
  map.leave(program.exit, program.steps.size());
  find_peak(out, program.steps.size());
  return out;
}

std::vector<MemoryRow> memory_rows(const Plan& plan) { return rows_of(plan, largest_peak(plan)); }

std::string memory_table(const Plan& plan, Hosting hosting) {
  const Peak peak = largest_peak(plan);
  std::string out = "memory per rank (bytes)\n";
  const std::vector<MemoryRow> rows = rows_of(plan, peak);
  int64_t sum = 0;
  for (int a = 0; a < kArenas; ++a) {
    for (const MemoryRow& row : rows)
      if (row.arena == static_cast<Arena>(a))
        out += fmt::format("  {:<10} {:<30} {:>16}\n", arena_name(static_cast<Arena>(a)), row.name, row.bytes);
    out += fmt::format("  {:<10} {:<30} {:>16}", arena_name(static_cast<Arena>(a)), "total", plan.arena_bytes[a]);
    if (a == static_cast<int>(Arena::transient)) out += fmt::format("   lower bound {}", peak.live.peak);
    out += '\n';
    sum += plan.arena_bytes[a];
  }
  out += fmt::format("  {:<41} {:>16}\n", "sum", sum);
  out += reserve_row(plan, hosting);
  if (peak.live.peak_step >= 0)
    out += fmt::format("  peak of the transient arena: {}[{}], where {} is the largest of its tensors; rows above are bytes live there\n",
                       program_name(peak.program->program), peak.live.peak_step, plan.tensors[peak.live.peak_tensor].name);
  return out;
}

}  // namespace zeroplan
