// Random training graphs under random options: the plan verifier, which shares no code with the passes, finds nothing to object to.
#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/plan/verifier.h"
#include "tests/lower/models.h"

namespace zeroplan::test {
namespace {

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed), build_(graph_) {}

  Graph make(int nodes) {
    pool_.push_back(add_input(graph_, "x", DType::f32, {4, 6}));
    pool_.push_back(weight(4, 6));
    for (int i = 0; i < nodes; ++i) pool_.push_back(next());
    ValueId total = kNone;
    for (int i = 0; i < 4; ++i) {
      const Attributes all = {{Attr::axes, std::vector<int64_t>{0, 1}}, {Attr::keepdims, int64_t{0}}};
      const ValueId part = build_.add(OpKind::reduce_sum, {pool_[pool_.size() - 1 - pick(3)]}, all);
      total = total == kNone ? part : build_.add(OpKind::add, {total, part});
    }
    graph_.loss.sum = total;
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  ValueId any() { return pool_[pool_.size() - 1 - pick(std::min<int>(static_cast<int>(pool_.size()), 5))]; }

  // New, or one of the same shape that exists: used twice, near or far.
  ValueId weight(int64_t rows, int64_t columns) {
    for (ValueId old : weights_)
      if (build_.shape(old) == Shape{rows, columns} && pick(3) == 0) return old;
    weights_.push_back(add_parameter(graph_, fmt::format("m{}.w{}", pick(4), weights_.size()), {rows, columns}, pick(6) != 0));
    return weights_.back();
  }

  ValueId same_shape(ValueId x) {
    for (int i = 0; i < 4; ++i)
      if (const ValueId y = any(); build_.shape(y) == build_.shape(x)) return y;
    return weight(build_.shape(x)[0], build_.shape(x)[1]);
  }

  ValueId next() {
    const ValueId x = any();
    const int64_t rows = build_.shape(x)[0], columns = build_.shape(x)[1];
    switch (pick(9)) {
      case 0: return build_.add(OpKind::matmul, {x, weight(columns, 2 + pick(6))});
      case 1: return build_.add(OpKind::matmul, {x, build_.transpose(weight(3 + pick(3), columns), {1, 0})});
      case 2: return build_.add(OpKind::add, {x, same_shape(x)});
      case 3: return build_.add(OpKind::mul, {x, same_shape(x)});
      case 4: return build_.transpose(x, {1, 0});
      case 5: return build_.reshape(x, {columns, rows});
      case 6: return build_.add(OpKind::relu, {x});
      case 7: return build_.add(OpKind::softmax, {x});
      default: return rows < 3 ? build_.add(OpKind::tanh, {x}) : without_first_row(x);
    }
  }

  ValueId without_first_row(ValueId x) {
    const Shape shape = {build_.shape(x)[0] - 1, build_.shape(x)[1]};
    const std::vector<int64_t> starts = {1, 0}, steps = {1, 1};
    return build_.add(OpKind::slice, {x}, {{Attr::starts, starts}, {Attr::steps, steps}, {Attr::shape, shape}});
  }

  std::mt19937 random_;
  Graph graph_;
  Builder build_;
  std::vector<ValueId> pool_, weights_;
};

CompileOptions random_options(uint32_t seed) {
  std::mt19937 random(seed);
  CompileOptions options = options_of(1 + static_cast<int>(random() % 5), static_cast<int>(random() % 4), static_cast<int>(random() % 4));
  options.eval = random() % 2 == 0;
  options.optimizer = static_cast<OptimizerKind>(random() % 3);
  options.momentum = random() % 2 == 0 ? 0.9 : 0;
  if (random() % 3 == 0) options.unit_bytes = 1 + static_cast<int64_t>(random() % 1000);
  if (random() % 4 == 0) options.unit_patterns = {"m0"};
  if (random() % 4 == 0) options.reduce_bytes = 256 + static_cast<int64_t>(random() % 4000);
  if (random() % 3 == 0) options.batch = options.micro_batches = 1 + static_cast<int64_t>(random() % 8);  // idle ranks, or rounds
  return options;
}

TEST(EmitPlan, RandomGraphsPassTheVerifier) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Graph graph = RandomModel(seed).make(5 + static_cast<int>(seed % 40));
    CompileOptions options = random_options(seed);
    bool matches = false;
    for (const Parameter& parameter : graph.parameters) matches = matches || parameter.name.starts_with("m0");
    if (!matches) options.unit_patterns.clear();
    const Plan plan = compile_graph(std::move(graph), options);
    for (const Violation& v : verify_plan(plan).violations)
      ADD_FAILURE() << "seed " << seed << ": [" << v.rule << "] " << v.program << " " << v.step << ": " << v.message;
    const int64_t bound = *std::max_element(plan.transient_lower_bound.begin(), plan.transient_lower_bound.end());
    EXPECT_LE(static_cast<double>(plan.arena_bytes[1]), 1.05 * static_cast<double>(bound)) << seed;
  }
}

}  // namespace
}  // namespace zeroplan::test
