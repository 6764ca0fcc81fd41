#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "passes/edit/views.h"
#include "passes/passes.h"
#include "passes/zero/use_intervals.h"

namespace zeroplan {
namespace {

// Reorders the gathers of one program: each as early as the live limit and the prefetch distance allow, in the order of first use.
class Prefetcher {
 public:
  Prefetcher(Graph& graph, NodeId begin, NodeId end, int prefetch, int max_live)
      : graph_(graph), begin_(begin), end_(end), prefetch_(prefetch), max_live_(max_live), roots_(view_roots(graph)) {}

  std::vector<Node> run() {
    find_intervals();
    issue_while_possible();
    for (NodeId id = begin_; id < end_; ++id) {
      if (graph_.nodes[id].op == OpKind::gather_weights) continue;
      start_intervals(id);
      if (graph_.nodes[id].op == OpKind::free_unit) --live_;
      result_.push_back(graph_.nodes[id]);
      if (graph_.nodes[id].op == OpKind::free_unit) issue_while_possible();
    }
    return std::move(result_);
  }

 private:
  void find_intervals() {
    std::vector<int> interval_of(graph_.values.size(), kNone);
    for (NodeId id = begin_; id < end_; ++id) {
      if (graph_.nodes[id].op != OpKind::gather_weights) continue;
      for (ValueId output : graph_.nodes[id].outputs) interval_of[output] = static_cast<int>(gathers_.size());
      gathers_.push_back(id);
    }
    starts_.assign(end_ - begin_, kNone);
    for (NodeId id = begin_; id < end_; ++id)
      for (ValueId input : graph_.nodes[id].inputs)
        if (input != kNone) starts_[id - begin_] = std::max(starts_[id - begin_], interval_of[roots_[input]]);
  }

  // Gathers whose first use is `node` have to be there; the start of an interval also moves the window of allowed gathers.
  void start_intervals(NodeId node) {
    if (starts_[node - begin_] < started_) return;
    started_ = starts_[node - begin_] + 1;
    while (next_ < started_) issue("first use");
    issue_while_possible();
  }

  // started_ intervals have begun: the next gather may run ahead of at most prefetch_ others.
  void issue_while_possible() {
    while (next_ < static_cast<int>(gathers_.size())) {
      if (live_ >= max_live_) {
        bound_ = "slots";
        return;
      }
      if (next_ >= started_ + prefetch_) {
        bound_ = fmt::format("prefetch {}", prefetch_);
        return;
      }
      issue(bound_);
    }
  }

  void issue(const std::string& bound) {
    Node gather = graph_.nodes[gathers_[next_++]];
    gather.reason += fmt::format("{}bound by {}", gather.reason.empty() ? "" : "; ", bound);
    result_.push_back(std::move(gather));
    ++live_;
    check(live_ <= max_live_, "gathered units fit in the live limit");
  }

  Graph& graph_;
  NodeId begin_, end_;
  int prefetch_, max_live_;
  std::vector<ValueId> roots_;
  std::vector<NodeId> gathers_;  // by interval
  std::vector<int> starts_;      // by node: the last interval that it reads
  int started_ = 0, next_ = 0, live_ = 0;
  std::string bound_ = "start of program";
  std::vector<Node> result_;
};

bool has_slots(Program program) { return program == Program::micro_step || program == Program::eval_step || program == Program::save; }

}  // namespace

bool prefetch_edges(Graph& graph, const CompileOptions& options) {
  const int max_live = max_live_units(graph, options);
  std::vector<Node> nodes;
  bool changed = false;
  const NodeId count = static_cast<NodeId>(graph.nodes.size());
  for (NodeId begin = 0, end = 0; begin < count; begin = end) {
    const Program program = graph.nodes[begin].program;
    while (end < count && graph.nodes[end].program == program) ++end;
    if (!has_slots(program)) {
      nodes.insert(nodes.end(), graph.nodes.begin() + begin, graph.nodes.begin() + end);
      continue;
    }
    for (NodeId id = begin; id < end; ++id) changed = changed || graph.nodes[id].op == OpKind::gather_weights;
    std::vector<Node> part = Prefetcher(graph, begin, end, options.prefetch, max_live).run();
    nodes.insert(nodes.end(), part.begin(), part.end());
  }
  if (!changed) return false;
  graph.nodes = std::move(nodes);
  graph.reindex();
  return true;
}

}  // namespace zeroplan
