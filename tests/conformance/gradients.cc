#include "tests/conformance/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/builder.h"
#include "graph/ops/op_def.h"
#include "passes/pass.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/verifier.h"

namespace zeroplan {
namespace {

// A difference over a step h of a function computed to ε has an error of ε |f| / h and a smaller one of the order of h² (Numerical Recipes,
// 3rd edition, 5.7). |f| is that of the terms that are summed: they may cancel.
constexpr double kStep = 1e-6;         // relative to max(1, |x|)
constexpr double kTolerance = 2e-5;    // relative to the gradients of the leaf
constexpr double kRounding = 1e-14;    // ε: some steps of double in each term
constexpr int64_t kMostElements = 48;  // checked per leaf

// A weight per output element that no symmetry cancels.
double output_weight(int64_t i) { return 0.75 + std::cos(1.7 * static_cast<double>(i + 1)); }

ValueId weighted(Builder& build, ValueId output) {
  const Shape shape = build.shape(output);
  HostTensor weights(DType::f64, shape);
  for (int64_t i = 0; i < weights.count(); ++i) weights.set(i, output_weight(i));
  return build.add(OpKind::mul, {output, build.constant(std::move(weights))});
}

ValueId sum(Builder& build, ValueId x) {
  std::vector<int64_t> axes(build.shape(x).size());
  std::iota(axes.begin(), axes.end(), 0);
  return build.add(OpKind::reduce_sum, {x}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{0}}});
}

// A cast through which no gradient is to pass (straight_through 0): a number of the data, not of the training.
bool detaches(const Node& node) { return node.op == OpKind::cast && node.attributes.get_int(Attr::straight_through, 1) == 0; }

// Values that a leaf reaches through floating-point values.
std::vector<bool> reached_from(const Graph& graph, const std::vector<bool>& leaf) {
  std::vector<bool> reached = leaf;
  for (const Node& node : graph.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return id != kNone && reached[id]; });
    for (const ValueId out : node.outputs) reached[out] = any && is_floating(graph.values[out].dtype) && !detaches(node);
  }
  return reached;
}

std::vector<int64_t> chosen_elements(int64_t count) {
  std::vector<int64_t> chosen;
  const int64_t n = std::min(count, kMostElements);
  for (int64_t i = 0; i < n; ++i) chosen.push_back(n == count ? i : i * count / n + (i * 7919) % (count / n));
  return chosen;
}

double largest(const HostTensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.count(); ++i) most = std::max(most, std::abs(t.get(i)));
  return most;
}

class GivenInputs : public DataSource {
 public:
  GivenInputs(const Plan& plan, const GradientProblem& problem) {
    for (const PlanInput& input : plan.inputs) values_.push_back(problem.values.at(problem.graph.find(input.name)));
  }
  int64_t samples() const override { return 1; }
  void read(int index, int64_t, int64_t, const int64_t*, const TensorView& to) const override {
    std::memcpy(to.data, values_[index].data(), static_cast<size_t>(values_[index].bytes()));
  }

 private:
  std::vector<HostTensor> values_;
};

// Some cases show how NaN and infinity pass; there is no gradient at them.
void make_finite(HostTensor& values) {
  for (int64_t i = 0; i < values.count(); ++i)
    if (!std::isfinite(values.get(i))) values.set(i, 0.25);
}

const RunScalars kScalars{.step = 1};

Plan plan_of(const GradientProblem& problem) {
  CompileOptions options;
  options.batch = options.micro_batches = 1;
  options.precision = DType::f64;
  options.optimizer = OptimizerKind::sgd;
  Graph graph = problem.graph;
  run_pipeline(graph, options);
  Plan plan = emit_plan(graph, options);
  for (PlanInput& input : plan.inputs) input.sample_axis = -1;
  plan.header.digest = plan_digest(plan);
  require_verified(plan);
  return plan;
}

Executor executor_of(const GradientProblem& problem, const Plan& plan, const std::map<ValueId, HostTensor>& values) {
  const WeightReader weights = [&](int parameter, int64_t first, int64_t count, void* to) {
    std::memcpy(to, values.at(problem.leaves[parameter]).as<double>() + first, static_cast<size_t>(count) * sizeof(double));
  };
  return Executor({std::make_shared<const Plan>(plan)}, weights, {});
}

// Of the loss at the problem's values, by the reference evaluators; what draws random numbers has none, and is run.
class Differences {
 public:
  explicit Differences(const GradientProblem& problem) : problem_(problem), values_(problem.values) {
    const auto& nodes = problem.graph.nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return !op_def(node.op).evaluate; })) plan_ = plan_of(problem);
  }

  std::string compare(const std::vector<HostTensor>& gradients, bool& zero) {
    here_ = loss();
    if (!std::isfinite(here_)) return fmt::format("the loss is {}", here_);
    zero = true;
    for (size_t p = 0; p < gradients.size(); ++p) {
      const double scale = largest(gradients[p]);
      for (const int64_t i : chosen_elements(gradients[p].count())) {
        zero = zero && gradients[p].get(i) == 0;
        if (const std::string text = compare(static_cast<int>(p), i, gradients[p].get(i), scale); !text.empty()) return text;
      }
    }
    return "";
  }

 private:
  double loss() {
    if (plan_) return executor_of(problem_, *plan_, values_).accumulate(GivenInputs(*plan_, problem_), 0, nullptr, kScalars).loss;
    std::map<ValueId, HostTensor> all = values_;
    evaluate_program(problem_.graph, Program::micro_step, all);
    terms_ = std::max(terms_, all.at(problem_.scale).get(0));
    return all.at(problem_.graph.loss.sum).get(0);
  }

  // Slopes over h below and above the place.
  std::pair<double, double> slopes(ValueId leaf, int64_t i, double h) {
    HostTensor& x = values_.at(leaf);
    const double at = x.get(i);
    x.set(i, at + h);
    const double above = (loss() - here_) / h;
    x.set(i, at - h);
    const double below = (here_ - loss()) / h;
    x.set(i, at);
    return {below, above};
  }

  std::string compare(int parameter, int64_t i, double gradient, double scale) {
    const ValueId leaf = problem_.leaves[parameter];
    const double h = kStep * std::max(1.0, std::abs(values_.at(leaf).get(i)));
    const auto [below, above] = slopes(leaf, i, h);
    if (!std::isfinite(below) || !std::isfinite(above)) return "";  // the edge of the domain: there is no derivative
    const double rounding = kRounding * std::max(terms_, std::abs(here_)) / h, tolerance = kTolerance * scale + rounding;
    const bool corner = std::abs(above - below) > 1e-3 * scale + rounding;
    // A smooth loss is held to the central difference; at a corner every slope between the two sides is a gradient.
    const bool agrees = corner ? gradient >= std::min(below, above) - tolerance && gradient <= std::max(below, above) + tolerance
                               : std::abs(gradient - (above + below) / 2) <= tolerance;
    if (agrees || jumps(leaf, i, h, below, above)) return "";
    return fmt::format("gradient of '{}'[{}] is {:.9g}, differences give {:.9g} and {:.9g}", problem_.graph.parameters[parameter].name, i,
                       gradient, below, above);
  }

  // The loss has a jump there: its differences grow as the step shrinks.
  bool jumps(ValueId leaf, int64_t i, double h, double below, double above) {
    if (std::max(std::abs(above), std::abs(below)) * h < 1e-6 * std::max(terms_, std::abs(here_))) return false;
    const auto [closer_below, closer_above] = slopes(leaf, i, h / 10);
    return std::abs(closer_above) > 5 * std::abs(above) || std::abs(closer_below) > 5 * std::abs(below);
  }

  const GradientProblem& problem_;
  std::map<ValueId, HostTensor> values_;
  std::optional<Plan> plan_;
  double here_ = 0, terms_ = 0;
};

}  // namespace

GradientProblem make_problem(const Forward& forward) {
  GradientProblem problem;
  problem.graph = forward.model.graph;
  problem.values = forward.values;
  Graph& graph = problem.graph;
  std::vector<ValueId> outputs;
  for (const auto& [name, id] : graph.outputs) outputs.push_back(id);
  graph.outputs.clear();
  std::vector<bool> leaf(graph.values.size(), false);
  for (size_t i = 0; i < leaf.size(); ++i) {
    const Value& value = graph.values[i];
    leaf[i] =
        is_floating(value.dtype) && (value.kind == ValueKind::input || value.kind == ValueKind::parameter) && elements(value.shape) > 0;
  }
  const std::vector<bool> reached = reached_from(graph, leaf);
  graph.parameters.clear();
  for (size_t i = 0; i < leaf.size(); ++i) {
    if (!leaf[i]) continue;
    Value& value = graph.values[i];
    value.kind = ValueKind::parameter;
    value.parameter = static_cast<int32_t>(graph.parameters.size());
    graph.parameters.push_back({.name = value.name, .dtype = value.dtype, .shape = value.shape});
    problem.leaves.push_back(static_cast<ValueId>(i));
    make_finite(problem.values.at(problem.leaves.back()));
  }
  std::erase_if(graph.inputs, [&](ValueId id) { return leaf[id]; });
  Builder build(graph);
  build.origin = "loss";
  std::set<ValueId> counted;
  for (const ValueId id : outputs) {
    if (!is_floating(graph.values[id].dtype) || !reached[id] || !counted.insert(id).second) continue;
    const ValueId terms = weighted(build, id), part = sum(build, terms);
    const ValueId sizes = sum(build, build.add(OpKind::abs, {terms}));
    graph.loss.sum = graph.loss.sum == kNone ? part : build.add(OpKind::add, {graph.loss.sum, part});
    problem.scale = problem.scale == kNone ? sizes : build.add(OpKind::add, {problem.scale, sizes});
  }
  if (graph.loss.sum == kNone) problem.leaves.clear();
  return problem;
}

std::vector<HostTensor> built_gradients(const GradientProblem& problem) {
  const Plan plan = plan_of(problem);
  Executor executor = executor_of(problem, plan, problem.values);
  executor.accumulate(GivenInputs(plan, problem), 0, nullptr, kScalars);
  std::vector<HostTensor> gradients;
  for (size_t p = 0; p < problem.leaves.size(); ++p) gradients.push_back(executor.gradient(static_cast<int>(p)));
  return gradients;
}

std::string compare_gradients(const GradientProblem& problem, const std::vector<HostTensor>& gradients, bool& zero) {
  return Differences(problem).compare(gradients, zero);
}

}  // namespace zeroplan
