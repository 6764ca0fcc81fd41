#include "api/doctor.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/training_run.h"
#include "base/random.h"

namespace zeroplan {
namespace {

constexpr double kAgreement = 1e-5;  // of the larger of both derivatives
// Lengths of the step along a direction, relative to the parameter's largest value. The next one is taken where the loss may have a kink
// (ReLU) within the one before.
constexpr double kSteps[] = {1e-6, 1e-7, 1e-8};

// +1 and -1 at random: every element of the gradient counts alike.
HostTensor random_direction(const Shape& shape, uint64_t seed) {
  SplitMix64 random(seed);
  HostTensor direction(DType::f64, shape);
  for (int64_t i = 0; i < direction.count(); ++i) direction.set(i, random.next() & 1 ? 1.0 : -1.0);
  return direction;
}

double dot(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) sum += a.get(i) * b.get(i);
  return sum;
}

// Reads the plan's weights, one of them moved by `step` times a direction.
struct Moved {
  int parameter = kNone;
  const HostTensor* direction = nullptr;
  double step = 0;
};

class Probe {
 public:
  Probe(const ModelFile& file, const CompileOptions& options, const OpenData& open)
      : plan_(std::make_shared<const Plan>(compile(file, options))), weights_(open_weights(*plan_, file.weights())), data_(open(*plan_)) {}

  const Plan& plan() const { return *plan_; }

  std::unique_ptr<Executor> executor(const Moved& moved) const {
    const WeightReader reader = [this, moved](int parameter, int64_t first, int64_t count, void* to) {
      weights_(parameter, first, count, to);
      if (parameter != moved.parameter) return;
      for (int64_t i = 0; i < count; ++i) static_cast<double*>(to)[i] += moved.step * moved.direction->get(first + i);
    };
    return std::make_unique<Executor>(std::vector{plan_}, reader, ExecutorOptions{});
  }

  double loss(const Moved& moved) const { return executor(moved)->accumulate(*data_, 0, nullptr, {.step = 1}).loss; }

  double largest_weight(int parameter) const {
    const Shape& shape = plan_->parameters[parameter].parameter.shape;
    HostTensor values(DType::f64, shape);
    weights_(parameter, 0, values.count(), values.mutable_data());
    double most = 0;
    for (int64_t i = 0; i < values.count(); ++i) most = std::max(most, std::abs(values.get(i)));
    return most;
  }

  const DataSource& data() const { return *data_; }

 private:
  std::shared_ptr<const Plan> plan_;
  WeightReader weights_;
  std::unique_ptr<DataSource> data_;
};

// Evenly spread over the model, in its order.
std::vector<int> chosen_parameters(const Plan& plan, int most) {
  std::vector<int> trainable, chosen;
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    if (plan.parameters[i].parameter.trainable) trainable.push_back(static_cast<int>(i));
  const int n = std::min<int>(most, static_cast<int>(trainable.size()));
  for (int i = 0; i < n; ++i) chosen.push_back(trainable[static_cast<size_t>(i) * trainable.size() / n]);
  return chosen;
}

DirectionCheck check_direction(const Probe& probe, int parameter, const HostTensor& gradient, double weight) {
  const HostTensor direction = random_direction(gradient.shape(), 17 + static_cast<uint64_t>(parameter));
  const double scale = std::max(probe.largest_weight(parameter), 1e-3), loss = std::abs(probe.loss({}));
  DirectionCheck check{probe.plan().parameters[parameter].parameter.name, dot(gradient, direction) / weight};
  for (const double length : kSteps) {
    const double step = length * scale;
    check.numeric = (probe.loss({parameter, &direction, step}) - probe.loss({parameter, &direction, -step})) / (2 * step);
    // What rounding of the loss alone does to the difference.
    const double rounding = 4e-16 * loss / step;
    check.agrees =
        std::abs(check.built - check.numeric) <= kAgreement * std::max(std::abs(check.built), std::abs(check.numeric)) + 10 * rounding;
    if (check.agrees) break;
  }
  return check;
}

bool is_straight_through(const Node& node) {
  return (node.op == OpKind::round || node.op == OpKind::cast) && node.attributes.get_int(Attr::straight_through, 0) != 0;
}

// Names of the parameters that reach the loss through rounding whose gradient is that of no rounding.
std::set<std::string> rounded_parameters(const Graph& graph) {
  std::vector<bool> needed(graph.values.size()), rounded(graph.values.size());
  for (const ValueId id : {graph.loss.sum, graph.loss.weight})
    if (id != kNone) needed[id] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto any = [&](const std::vector<bool>& of) {
      return std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) { return id != kNone && of[id]; });
    };
    if (!any(needed)) continue;
    const bool rounds = is_straight_through(*node) || any(rounded);
    for (const ValueId id : node->inputs)
      if (id != kNone) needed[id] = true, rounded[id] = rounded[id] || rounds;
  }
  std::set<std::string> names;
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (rounded[i] && graph.values[i].kind == ValueKind::parameter) names.insert(graph.parameters[graph.values[i].parameter].name);
  return names;
}

double loss_after(const ModelFile& file, const CompileOptions& options, const OpenData& open, int64_t steps) {
  const Plan plan = compile(file, options);
  const std::unique_ptr<DataSource> data = open(plan);
  const std::unique_ptr<Executor> executor = make_executor(plan, {}, file.weights());
  RunOptions run;
  run.steps = steps;
  return run_training(*executor, *data, nullptr, run, [](const RunEvent&) {}).last_loss;
}

// What was decided, and the options that decide otherwise.
struct Decision {
  std::string text;
  std::vector<std::string> tie, untie;
};

std::string quoted(const std::string& name) { return "^" + RE2::QuoteMeta(name) + "$"; }

std::vector<Decision> find_decisions(const Plan& plan) {
  std::vector<Decision> decisions;
  std::map<std::string, std::vector<std::string>> splits;  // merged initializer -> parameters made of it
  for (const PlanParameter& p : plan.parameters) {
    const Parameter& parameter = p.parameter;
    if (!parameter.split_uses.empty()) splits[parameter.source.initializer].push_back(parameter.name);
    if (parameter.aliases.empty()) continue;
    std::vector<std::string> names = {parameter.source.initializer};
    for (const ParameterAlias& alias : parameter.aliases) names.push_back(alias.initializer);
    Decision& tie = decisions.emplace_back(Decision{fmt::format("'{}' are one parameter", fmt::join(names, "' and '")), {}, {}});
    for (const std::string& name : names) tie.untie.push_back(quoted(name));
  }
  for (const auto& [merged, names] : splits)
    decisions.push_back({fmt::format("'{}' are split from '{}'", fmt::join(names, "', '"), merged), {quoted(merged)}, {}});
  return decisions;
}

}  // namespace

std::vector<DirectionCheck> check_directions(const ModelFile& file, CompileOptions options, const OpenData& data, int most) {
  options.precision = DType::f64;
  options.optimizer = OptimizerKind::sgd;
  options.momentum = 0;
  options.ranks = 1;
  const Probe probe(file, options, data);
  std::vector<std::pair<int, HostTensor>> gradients;
  double weight = 1;
  {
    const std::unique_ptr<Executor> executor = probe.executor({});
    weight = executor->accumulate(probe.data(), 0, nullptr, {.step = 1}).weight;
    for (const int p : chosen_parameters(probe.plan(), most)) gradients.emplace_back(p, executor->gradient(p));
  }
  std::vector<DirectionCheck> checks;
  const std::set<std::string> rounded = rounded_parameters(inspect(file, options).model.graph);
  for (const auto& [parameter, gradient] : gradients) {
    const std::string& name = probe.plan().parameters[parameter].parameter.name;
    if (rounded.count(name))
      checks.push_back({.parameter = name, .rounded = true});
    else
      checks.push_back(check_direction(probe, parameter, gradient, weight));
  }
  return checks;
}

std::vector<DecisionEffect> decision_effects(const ModelFile& file, CompileOptions options, const OpenData& data, int64_t steps) {
  std::vector<DecisionEffect> effects;
  const std::vector<Decision> decisions = find_decisions(compile(file, options));
  const double loss = decisions.empty() ? 0 : loss_after(file, options, data, steps);
  for (const Decision& decision : decisions) {
    CompileOptions other = options;
    other.tie.insert(other.tie.end(), decision.tie.begin(), decision.tie.end());
    other.untie.insert(other.untie.end(), decision.untie.begin(), decision.untie.end());
    effects.push_back({decision.text, loss, loss_after(file, other, data, steps)});
  }
  return effects;
}

}  // namespace zeroplan
