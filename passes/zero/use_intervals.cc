#include "passes/zero/use_intervals.h"

#include <algorithm>

#include <fmt/format.h>

#include "passes/edit/views.h"

namespace zeroplan {
namespace {

// A maximal row of uses of one unit without a use of another unit in between, by index into the program's uses.
struct Run {
  int32_t unit = kNone;
  int first = 0, last = 0;
  int previous = kNone;  // the unit's run before this one
};

struct Gap {
  int run = 0;     // the run after the gap
  int inside = 0;  // other runs in it
};

class IntervalPlanner {
 public:
  IntervalPlanner(const Graph& graph, std::vector<UnitUse> uses, int prefetch, int max_live)
      : graph_(graph), uses_(std::move(uses)), prefetch_(prefetch), max_live_(max_live) {}

  std::vector<UseInterval> plan() {
    find_runs();
    std::vector<int> live;
    for (const UnitUse& use : uses_) live.push_back(static_cast<int>(use.units.size()));
    keep_gaps(live);
    return make_intervals();
  }

 private:
  void find_runs() {
    std::vector<int> latest(graph_.units.size(), kNone);
    runs_at_.resize(uses_.size());
    for (int i = 0; i < static_cast<int>(uses_.size()); ++i)
      for (int32_t unit : uses_[i].units) {
        const int run = latest[unit];
        if (run != kNone && runs_[run].last == i - 1) {
          runs_[run].last = i;
        } else {
          latest[unit] = static_cast<int>(runs_.size());
          runs_.push_back({unit, i, i, run});
        }
        runs_at_[i].push_back(latest[unit]);
      }
  }

  // Distinct runs strictly inside the gap before `run`; prefetch + 1 stands for "too many".
  int runs_inside(int run) const {
    std::vector<int> seen;
    for (int i = runs_[runs_[run].previous].last + 1; i < runs_[run].first; ++i)
      for (int other : runs_at_[i]) {
        if (std::find(seen.begin(), seen.end(), other) != seen.end()) continue;
        seen.push_back(other);
        if (static_cast<int>(seen.size()) > prefetch_) return prefetch_ + 1;
      }
    return static_cast<int>(seen.size());
  }

  // Short gaps first: they save a gather at the least cost.
  void keep_gaps(std::vector<int>& live) {
    std::vector<Gap> gaps;
    inside_.assign(runs_.size(), 0);
    kept_.assign(runs_.size(), false);
    for (int run = 0; run < static_cast<int>(runs_.size()); ++run) {
      if (runs_[run].previous == kNone) continue;
      inside_[run] = runs_inside(run);
      if (inside_[run] <= prefetch_) gaps.push_back({run, inside_[run]});
    }
    std::stable_sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.inside < b.inside; });
    for (const Gap& gap : gaps) {
      const int from = runs_[runs_[gap.run].previous].last + 1, to = runs_[gap.run].first;
      const auto room = [&](int count) { return count < max_live_; };
      if (!std::all_of(live.begin() + from, live.begin() + to, room)) continue;
      for (int i = from; i < to; ++i) ++live[i];
      kept_[gap.run] = true;
    }
  }

  std::string reason_of(int run) const {
    if (runs_[run].previous == kNone) return "first use";
    if (inside_[run] > prefetch_) return "freed in between: more than the prefetch of other units is used";
    return "freed in between: live units";
  }

  std::vector<UseInterval> make_intervals() const {
    std::vector<UseInterval> intervals;
    std::vector<int> interval_of(runs_.size(), kNone);
    for (int run = 0; run < static_cast<int>(runs_.size()); ++run) {
      if (kept_[run]) {
        interval_of[run] = interval_of[runs_[run].previous];
        intervals[interval_of[run]].reason += fmt::format("; kept over {} other unit{}", inside_[run], inside_[run] == 1 ? "" : "s");
      } else {
        interval_of[run] = static_cast<int>(intervals.size());
        intervals.push_back({runs_[run].unit, {}, reason_of(run)});
      }
      for (int i = runs_[run].first; i <= runs_[run].last; ++i) intervals[interval_of[run]].uses.push_back(uses_[i].node);
    }
    return intervals;
  }

  const Graph& graph_;
  std::vector<UnitUse> uses_;
  int prefetch_, max_live_;
  std::vector<Run> runs_;                  // by first use
  std::vector<std::vector<int>> runs_at_;  // by use
  std::vector<int> inside_;
  std::vector<bool> kept_;
};

}  // namespace

std::vector<int32_t> shown_parameters(const Graph& graph) {
  const std::vector<ValueId> roots = view_roots(graph);
  std::vector<int32_t> shown(graph.values.size(), kNone);
  const auto shows = [&](const Value& value) {
    if (value.kind == ValueKind::parameter) return true;
    if (value.producer == kNone) return false;
    const OpKind op = graph.nodes[value.producer].op;
    return op == OpKind::gather_weights || op == OpKind::unit_view;
  };
  for (ValueId id = 0; id < static_cast<ValueId>(shown.size()); ++id)
    if (shows(graph.values[roots[id]])) shown[id] = graph.values[roots[id]].parameter;
  return shown;
}

std::vector<int32_t> parameter_units(const Graph& graph) {
  std::vector<int32_t> units(graph.parameters.size(), kNone);
  for (int32_t unit = 0; unit < static_cast<int32_t>(graph.units.size()); ++unit)
    for (const UnitParameter& member : graph.units[unit].parameters) units[member.parameter] = unit;
  return units;
}

std::vector<UnitUse> unit_uses(const Graph& graph, Program program) {
  const std::vector<int32_t> shown = shown_parameters(graph), unit_of = parameter_units(graph);
  std::vector<UnitUse> uses;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.program != program || is_view(node) || node.op == OpKind::free_unit) continue;
    UnitUse use{id, {}};
    for (ValueId input : node.inputs) {
      const int32_t unit = input == kNone || shown[input] == kNone ? kNone : unit_of[shown[input]];
      if (unit == kNone || graph.units[unit].weights != Placement::sharded) continue;
      if (std::find(use.units.begin(), use.units.end(), unit) == use.units.end()) use.units.push_back(unit);
    }
    if (!use.units.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

int max_live_units(const Graph& graph, const CompileOptions& options) {
  size_t most = 1;
  for (Program program : {Program::micro_step, Program::eval_step})
    for (const UnitUse& use : unit_uses(graph, program)) most = std::max(most, use.units.size());
  return static_cast<int>(most) + options.prefetch;
}

std::vector<UseInterval> use_intervals(const Graph& graph, Program program, int prefetch, int max_live) {
  return IntervalPlanner(graph, unit_uses(graph, program), prefetch, max_live).plan();
}

}  // namespace zeroplan
