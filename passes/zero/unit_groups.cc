#include "passes/zero/unit_groups.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/patterns.h"
#include "graph/ops/op_def.h"
#include "passes/edit/views.h"
#include "passes/zero/cut_points.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

class Grouper {
 public:
  Grouper(const Graph& graph, const CompileOptions& options)
      : graph_(graph), uses_(forward_uses(graph)), target_(target_unit_bytes(graph, options)) {
    order_by_first_use();
    match_patterns(options.unit_patterns);
  }

  std::vector<ParameterGroup> run() {
    cut_forward();
    std::map<std::string, size_t> by_pattern;              // pattern key -> group
    std::map<std::vector<int>, std::vector<int32_t>> far;  // parameters with the same far-apart uses
    for (int32_t p : order_) {
      if (graph_.parameters[p].statistics) continue;
      if (!pattern_key_[p].empty()) {
        add_to_pattern(by_pattern, p);
        barrier_ = true;
      } else if (const std::vector<int> segments = segments_of(p); segments.size() > 1) {
        far[segments].push_back(p);
      } else {
        add_to_segment(p, segments.empty() ? kNone : segments[0]);
      }
    }
    for (bool trainable : {true, false}) close_segment(trainable);
    for (auto& [segments, members] : far) add_far_groups(members);
    sort_groups();
    add_statistics();
    return std::move(groups_);
  }

 private:
  int first_use(int32_t p) const {
    return uses_.positions[p].empty() ? static_cast<int>(uses_.crossing.size()) + 1 : uses_.positions[p].front();
  }

  void order_by_first_use() {
    for (int32_t p = 0; p < static_cast<int32_t>(graph_.parameters.size()); ++p) order_.push_back(p);
    std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return first_use(a) < first_use(b); });
  }

  void match_patterns(const std::vector<std::string>& patterns) {
    Patterns units("--unit", patterns);
    pattern_key_.resize(graph_.parameters.size());
    for (int32_t p : order_)
      if (const std::optional<Patterns::Match> match = units.find(graph_.parameters[p].name))
        pattern_key_[p] = fmt::format("{}:{}", match->pattern, match->text);
    if (const std::vector<std::string> unused = units.unused(); !unused.empty()) throw ErrorList("options that cannot be used:", unused);
  }

  void cut_forward() {
    std::vector<CutItem> items;
    for (int32_t p : order_)
      if (pattern_key_[p].empty() && !uses_.positions[p].empty() && !graph_.parameters[p].statistics)
        items.push_back({first_use(p), parameter_bytes(graph_, p)});
    cuts_ = cut_points(uses_.crossing, items, target_);
  }

  // Segments between cuts in which the forward reads the parameter.
  std::vector<int> segments_of(int32_t p) const {
    std::vector<int> segments;
    for (int position : uses_.positions[p]) {
      const int segment = static_cast<int>(std::lower_bound(cuts_.begin(), cuts_.end(), position) - cuts_.begin());
      if (segments.empty() || segments.back() != segment) segments.push_back(segment);
    }
    return segments;
  }

  void add_to_pattern(std::map<std::string, size_t>& by_pattern, int32_t p) {
    const bool trainable = gets_gradient(graph_, p);
    const std::string key = fmt::format("{}:{}:{}", trainable ? 1 : 0, static_cast<int>(graph_.parameters[p].dtype), pattern_key_[p]);
    const auto [at, added] = by_pattern.emplace(key, groups_.size());
    if (added) groups_.push_back({{}, trainable});
    groups_[at->second].parameters.push_back(p);
  }

  // Far-apart parameters that are used in the same segments share units up to the target.
  void add_far_groups(const std::vector<int32_t>& members) {
    for (bool trainable : {true, false}) {
      ParameterGroup group{{}, trainable};
      for (int32_t p : members) {
        if (gets_gradient(graph_, p) != trainable) continue;
        if (!group.parameters.empty() && !fits(group, p)) flush(group);
        group.parameters.push_back(p);
      }
      flush(group);
    }
  }

  // One open segment and one group that it may be merged into, for trainable and for frozen parameters.
  struct Open {
    ParameterGroup group, segment;
    int segment_id = kNone;
    int previous = kNone;  // the group that was finished last on this side of a barrier
  };

  void add_to_segment(int32_t p, int segment) {
    if (barrier_) {  // parameters of a pattern lie in between: groups on both sides stay apart
      for (bool trainable : {true, false}) {
        close_segment(trainable);
        open_[trainable].previous = kNone;
      }
      barrier_ = false;
    }
    const bool trainable = gets_gradient(graph_, p);
    Open& open = open_[trainable];
    open.group.trainable = open.segment.trainable = trainable;
    const bool other_type =
        !open.segment.parameters.empty() && graph_.parameters[open.segment.parameters[0]].dtype != graph_.parameters[p].dtype;
    if (segment != open.segment_id || other_type) merge_segment(open);
    open.segment_id = segment;
    open.segment.parameters.push_back(p);
  }

  void merge_segment(Open& open) {
    if (open.segment.parameters.empty()) return;
    if (!open.group.parameters.empty() && !fits(open.group, open.segment.parameters)) finish(open);
    open.group.parameters.insert(open.group.parameters.end(), open.segment.parameters.begin(), open.segment.parameters.end());
    open.segment.parameters.clear();
  }

  void close_segment(bool trainable) {
    Open& open = open_[trainable];
    merge_segment(open);
    finish(open);
  }

  // A group below an eighth of the target joins its neighbour, whatever the sum: units of their own cost a gather each.
  void finish(Open& open) {
    if (open.group.parameters.empty()) return;
    const bool joins = open.previous != kNone && same_type(groups_[open.previous], open.group.parameters[0]) &&
                       std::min(bytes_of(groups_[open.previous]), bytes_of(open.group)) < target_ / 8;
    if (!joins) {
      open.previous = static_cast<int>(groups_.size());
      return flush(open.group);
    }
    std::vector<int32_t>& members = groups_[open.previous].parameters;
    members.insert(members.end(), open.group.parameters.begin(), open.group.parameters.end());
    open.group.parameters.clear();
  }

  bool same_type(const ParameterGroup& group, int32_t p) const {
    return graph_.parameters[group.parameters[0]].dtype == graph_.parameters[p].dtype;
  }
  int64_t bytes_of(const ParameterGroup& group) const {
    int64_t bytes = 0;
    for (int32_t p : group.parameters) bytes += parameter_bytes(graph_, p);
    return bytes;
  }
  bool fits(const ParameterGroup& group, int32_t p) const { return fits(group, std::vector<int32_t>{p}); }
  bool fits(const ParameterGroup& group, const std::vector<int32_t>& more) const {
    if (!same_type(group, more[0])) return false;
    int64_t bytes = bytes_of(group);
    for (int32_t p : more) bytes += parameter_bytes(graph_, p);
    return bytes <= target_;
  }

  void flush(ParameterGroup& group) {
    if (!group.parameters.empty()) groups_.push_back(group);
    group.parameters.clear();
  }

  // One group, whatever the patterns: their unit is of its own kind.
  void add_statistics() {
    ParameterGroup group{{}, false, true};
    for (int32_t p = 0; p < static_cast<int32_t>(graph_.parameters.size()); ++p)
      if (graph_.parameters[p].statistics) group.parameters.push_back(p);
    flush(group);
  }

  void sort_groups() {
    std::stable_sort(groups_.begin(), groups_.end(), [&](const ParameterGroup& a, const ParameterGroup& b) {
      return first_use(a.parameters[0]) < first_use(b.parameters[0]);
    });
  }

  const Graph& graph_;
  ForwardUses uses_;
  int64_t target_;
  std::vector<int32_t> order_;
  std::vector<std::string> pattern_key_;  // by parameter; empty: automatic
  std::vector<int> cuts_;
  std::map<bool, Open> open_;
  bool barrier_ = false;
  std::vector<ParameterGroup> groups_;
};

}  // namespace

ForwardUses forward_uses(const Graph& graph) {
  const std::vector<int32_t> shown = shown_parameters(graph);
  const std::vector<ValueId> roots = view_roots(graph);
  ForwardUses uses;
  uses.positions.resize(graph.parameters.size());
  std::vector<int> made(graph.values.size(), kNone), read(graph.values.size(), kNone);
  int position = 0;
  const bool trains = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.program == Program::micro_step; });
  const Program program = trains ? Program::micro_step : Program::eval_step;
  for (const Node& node : graph.nodes) {
    if (node.program != program || node.backward || is_view(node)) continue;
    for (ValueId input : node.inputs) {
      if (input == kNone) continue;
      read[roots[input]] = position;
      if (shown[input] == kNone) continue;
      std::vector<int>& list = uses.positions[shown[input]];
      if (list.empty() || list.back() != position) list.push_back(position);
    }
    for (ValueId output : node.outputs) made[output] = position;
    ++position;
  }
  std::vector<int64_t> change(position + 1, 0);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    if (made[id] == kNone || read[id] <= made[id]) continue;
    const int64_t bytes = elements(graph.values[id].shape) * dtype_bytes(graph.values[id].dtype);
    change[made[id]] += bytes;
    change[read[id]] -= bytes;
  }
  int64_t crossing = 0;
  for (int i = 0; i < position; ++i) uses.crossing.push_back(crossing += change[i]);
  return uses;
}

std::vector<ParameterGroup> group_parameters(const Graph& graph, const CompileOptions& options) { return Grouper(graph, options).run(); }

bool gets_gradient(const Graph& graph, int32_t parameter) {
  return graph.parameters[parameter].trainable && graph.gradients.contains(parameter);
}

int64_t parameter_bytes(const Graph& graph, int32_t parameter) {
  const Parameter& p = graph.parameters[parameter];
  return elements(p.shape) * dtype_bytes(p.dtype);
}

// Small models still get a few units: a quarter of the model is the most that a default unit holds.
int64_t target_unit_bytes(const Graph& graph, const CompileOptions& options) {
  if (options.unit_bytes > 0) return options.unit_bytes;
  constexpr int64_t kSmall = int64_t{64} << 10, kLarge = int64_t{64} << 20;
  int64_t total = 0;
  for (int32_t p = 0; p < static_cast<int32_t>(graph.parameters.size()); ++p) total += parameter_bytes(graph, p);
  return std::min(std::max(total / 16, std::min(kSmall, total / 4)), kLarge);
}

}  // namespace zeroplan
