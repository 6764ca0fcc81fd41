#include "tests/conformance/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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

constexpr double kStep = 1e-6;         // relative to max(1, |x|)
constexpr double kTolerance = 2e-5;    // relative to the gradients of the leaf
constexpr int64_t kMostElements = 48;  // checked per leaf

// A weight per output element that no symmetry cancels.
double output_weight(int64_t i) { return 0.75 + std::cos(1.7 * static_cast<double>(i + 1)); }

ValueId weighted_sum(Builder& build, ValueId output) {
  const Shape shape = build.shape(output);
  HostTensor weights(DType::f64, shape);
  for (int64_t i = 0; i < weights.count(); ++i) weights.set(i, output_weight(i));
  std::vector<int64_t> axes(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  const ValueId product = build.add(OpKind::mul, {output, build.constant(std::move(weights))});
  return build.add(OpKind::reduce_sum, {product}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{0}}});
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

double loss_of(const GradientProblem& problem, const std::map<ValueId, HostTensor>& values) {
  std::map<ValueId, HostTensor> all = values;
  evaluate_program(problem.graph, Program::micro_step, all);
  return all.at(problem.graph.loss.sum).get(0);
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

// Where the loss has a corner at x, every slope between the two sides is a gradient.
bool agrees(double gradient, double below, double above, double tolerance) {
  return gradient >= std::min(below, above) - tolerance && gradient <= std::max(below, above) + tolerance;
}

// The loss has a jump at x: its differences grow as the step shrinks.
bool jumps(const GradientProblem& problem, std::map<ValueId, HostTensor>& values, ValueId leaf, int64_t i, double h, double above,
           double below) {
  if (std::max(std::abs(above), std::abs(below)) * h < 1e-3) return false;
  HostTensor& x = values.at(leaf);
  const double at = x.get(i), here = loss_of(problem, values);
  x.set(i, at + h / 10);
  const double closer_above = (loss_of(problem, values) - here) / h * 10;
  x.set(i, at - h / 10);
  const double closer_below = (here - loss_of(problem, values)) / h * 10;
  x.set(i, at);
  return std::abs(closer_above) > 5 * std::abs(above) || std::abs(closer_below) > 5 * std::abs(below);
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
    const ValueId sum = weighted_sum(build, id);
    graph.loss.sum = graph.loss.sum == kNone ? sum : build.add(OpKind::add, {graph.loss.sum, sum});
  }
  if (graph.loss.sum == kNone) problem.leaves.clear();
  return problem;
}

std::vector<HostTensor> built_gradients(const GradientProblem& problem) {
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
  const WeightReader weights = [&](int parameter, int64_t first, int64_t count, void* to) {
    std::memcpy(to, problem.values.at(problem.leaves[parameter]).as<double>() + first, static_cast<size_t>(count) * sizeof(double));
  };
  Executor executor({std::make_shared<const Plan>(plan)}, weights, {});
  executor.accumulate(GivenInputs(plan, problem), 0, nullptr, {.step = 1});
  std::vector<HostTensor> gradients;
  for (size_t p = 0; p < problem.leaves.size(); ++p) gradients.push_back(executor.gradient(static_cast<int>(p)));
  return gradients;
}

std::string compare_gradients(const GradientProblem& problem, const std::vector<HostTensor>& gradients, bool& zero) {
  std::map<ValueId, HostTensor> values = problem.values;
  const double here = loss_of(problem, values);
  if (!std::isfinite(here)) return fmt::format("the loss is {}", here);
  zero = true;
  for (size_t p = 0; p < gradients.size(); ++p) {
    const ValueId leaf = problem.leaves[p];
    const double scale = std::max(1.0, largest(gradients[p]));
    for (const int64_t i : chosen_elements(gradients[p].count())) {
      HostTensor& x = values.at(leaf);
      const double at = x.get(i), h = kStep * std::max(1.0, std::abs(at)), g = gradients[p].get(i);
      x.set(i, at + h);
      const double above = (loss_of(problem, values) - here) / h;
      x.set(i, at - h);
      const double below = (here - loss_of(problem, values)) / h;
      x.set(i, at);
      zero = zero && g == 0;
      if (jumps(problem, values, leaf, i, h, above, below)) continue;
      const double rounding = 1e-15 * std::abs(here) / h;
      // A smooth loss is held to the central difference.
      const bool corner = std::abs(above - below) > 1e-3 * scale;
      const double middle = (above + below) / 2, tolerance = kTolerance * scale + rounding;
      if (corner ? !agrees(g, below, above, tolerance) : std::abs(g - middle) > tolerance)
        return fmt::format("gradient of '{}'[{}] is {:.9g}, differences give {:.9g} and {:.9g}", problem.graph.parameters[p].name, i, g,
                           below, above);
    }
  }
  return "";
}

}  // namespace zeroplan
