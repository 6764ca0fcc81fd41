#include "tests/plan/interpreter.h"

#include <deque>
#include <memory>
#include <random>

#include "tests/plan/tag_steps.h"

namespace zeroplan::test {
namespace {

// A step of one rank, or a collective of all, that has begun and not finished.
struct Running {
  int rank;  // -1: collective
  int step;
  std::unique_ptr<TagStep> work;
};

// One program on all ranks: any stream of any rank may go on as soon as its waits are over.
class ProgramRun {
 public:
  ProgramRun(const Plan& plan, const PlanProgram& program, std::vector<TagMemory>& ranks, std::mt19937_64& random, Tag& exported)
      : plan_(plan), program_(program), memory_(ranks), random_(random), exported_(exported), ranks_(static_cast<int>(ranks.size())) {
    for (size_t i = 0; i < program.steps.size(); ++i) streams_[static_cast<int>(program.steps[i].stream)].push_back(static_cast<int>(i));
    next_.assign(ranks_, {});
    busy_.assign(ranks_, {});
    done_.assign(ranks_, std::vector<bool>(program.steps.size(), false));
    for (auto& communicator : arrived_) communicator.resize(ranks_);
    for (int r = 0; r < ranks_; ++r)
      for (double& p : priority_.emplace_back()) p = std::uniform_real_distribution<>(0.02, 1)(random_);
  }

  std::string run() {
    while (!finished()) {
      if (!match_collectives()) return "collectives out of step";
      std::vector<std::pair<int, int>> ready;  // (rank, stream) that can begin
      for (int r = 0; r < ranks_; ++r)
        for (int s = 0; s < kStreams; ++s)
          if (can_begin(r, s)) ready.emplace_back(r, s);
      if (ready.empty() && running_.empty()) return "deadlock";
      if (ready.empty() || (!running_.empty() && chance(0.5)))
        finish_one();
      else
        begin_one(ready);
    }
    return {};
  }

 private:
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }

  bool finished() const {
    for (int r = 0; r < ranks_; ++r)
      for (int s = 0; s < kStreams; ++s)
        if (busy_[r][s] || next_[r][s] < static_cast<int>(streams_[s].size())) return false;
    return true;
  }

  bool can_begin(int rank, int stream) const {
    if (busy_[rank][stream] || next_[rank][stream] >= static_cast<int>(streams_[stream].size())) return false;
    for (int32_t wait : program_.steps[streams_[stream][next_[rank][stream]]].waits)
      if (!done_[rank][wait]) return false;
    return true;
  }

  // A stream with low priority falls far behind.
  void begin_one(const std::vector<std::pair<int, int>>& ready) {
    for (int tries = 0;; ++tries) {
      const auto [rank, stream] = ready[random_() % ready.size()];
      if (tries < 50 && !chance(priority_[rank][stream])) continue;
      const int index = streams_[stream][next_[rank][stream]++];
      const Step& step = program_.steps[index];
      busy_[rank][stream] = true;
      if (is_collective(step))
        arrived_[step.kind == StepKind::all_gather ? 0 : 1][rank].push_back(index);
      else
        begin(rank, index);
      return;
    }
  }

  void begin(int rank, int index) {
    Running running{rank, index, std::make_unique<TagStep>(plan_, memory_, program_.steps[index])};
    running.work->begin(rank, chance(0.5));
    running_.push_back(std::move(running));
  }

  // The k-th call of every rank on one communicator is one operation.
  bool match_collectives() {
    for (auto& communicator : arrived_) {
      while (true) {
        int first = -1;
        bool all = true;
        for (const auto& queue : communicator) all = all && !queue.empty();
        if (!all) break;
        for (auto& queue : communicator) {
          if (first >= 0 && queue.front() != first) return false;
          first = queue.front();
          queue.pop_front();
        }
        begin(-1, first);
      }
    }
    return true;
  }

  void finish_one() {
    const size_t pick = random_() % running_.size();
    Running running = std::move(running_[pick]);
    running_.erase(running_.begin() + static_cast<int64_t>(pick));
    running.work->finish(running.rank, exported_);
    const int stream = static_cast<int>(program_.steps[running.step].stream);
    for (int r = 0; r < ranks_; ++r) {
      if (running.rank >= 0 && r != running.rank) continue;
      done_[r][running.step] = true;
      busy_[r][stream] = false;
    }
  }

  const Plan& plan_;
  const PlanProgram& program_;
  std::vector<TagMemory>& memory_;
  std::mt19937_64& random_;
  Tag& exported_;
  int ranks_;
  std::vector<int> streams_[kStreams];
  std::vector<std::array<int, kStreams>> next_;
  std::vector<std::array<bool, kStreams>> busy_;
  std::vector<std::array<double, kStreams>> priority_;
  std::vector<std::vector<bool>> done_;
  std::array<std::vector<std::deque<int>>, 2> arrived_;  // by communicator and rank
  std::vector<Running> running_;
};

class Run {
 public:
  Run(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    for (int r = 0; r < plan.header.ranks; ++r) memory_.emplace_back(plan, r, mix(seed, 5));
    for (const PlanConstant& c : plan.constants)
      for (TagMemory& memory : memory_) {
        std::vector<Tag> tags;
        for (int64_t i = 0; i < elements(plan.tensors[c.tensor].shape); ++i) tags.push_back(mix(tag_of(c.bytes), static_cast<Tag>(i)));
        memory.write(c.tensor, tags);
      }
  }

  Interpretation run() {
    using P = Program;
    Interpretation result;
    std::vector<P> order = {P::load, P::micro_step, P::micro_step, P::update, P::eval_step, P::eval_end, P::micro_step, P::update, P::save};
    if (plan_.header.micro_batches <= plan_.header.ranks) order.erase(order.begin() + 1);
    for (P p : order) {
      result.failure = program(p);
      if (!result.failure.empty()) return result;
    }
    for (const PlanUnit& unit : plan_.units)
      for (const TagMemory& memory : memory_)
        for (Tag tag : memory.read(unit.weights_tensor)) result.result = mix(result.result, tag);
    result.result = mix(result.result, exported_);
    return result;
  }

 private:
  std::string program(Program which) {
    const PlanProgram* found = find_program(plan_, which);
    if (!found) return {};
    ++occasion_;
    try {
      for (TagMemory& memory : memory_) {
        memory.poison_arena(Arena::transient, which == Program::update ? carried() : std::vector<int32_t>{});
        memory.poison_arena(Arena::staging);
      }
      if (which == Program::micro_step || which == Program::eval_step) bring_inputs();
      return ProgramRun(plan_, *found, memory_, random_, exported_).run();
    } catch (const std::out_of_range& e) {
      return e.what();
    }
  }

  // What a single micro_step hands to update. Where it lies outside its arena the run fails.
  std::vector<int32_t> carried() const {
    std::vector<int32_t> shards;
    for (const PlanUnit& unit : plan_.units)
      if (unit.gradient_tensor != kNone && plan_.tensors[unit.gradient_tensor].arena == Arena::transient)
        shards.push_back(unit.gradient_tensor);
    return shards;
  }

  void bring_inputs() {
    for (size_t n = 0; n < plan_.inputs.size(); ++n)
      for (size_t r = 0; r < memory_.size(); ++r) {
        const int32_t tensor = plan_.inputs[n].tensor;
        std::vector<Tag> tags;
        for (int64_t i = 0; i < elements(plan_.tensors[tensor].shape); ++i)
          tags.push_back(mix(mix(mix(occasion_, n), r), static_cast<Tag>(i)));
        memory_[r].write(tensor, tags);
      }
  }

  const Plan& plan_;
  std::mt19937_64 random_;
  std::vector<TagMemory> memory_;
  Tag exported_ = 0;
  Tag occasion_ = 0;
};

}  // namespace

Interpretation interpret(const Plan& plan, uint64_t seed) { return Run(plan, seed).run(); }

}  // namespace zeroplan::test
