// optimizer_update against PyTorch's formulas in double.
#include <cmath>

#include <gtest/gtest.h>

#include "runtime/plan/report.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

// One unit of two parameters with a gap, updated by one rank.
template <typename T>
struct Update {
  static constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;
  std::vector<T> weights, gradient, m, v;
  std::vector<double> report = std::vector<double>(kReportFields, 0);
  UnitExtent extents[2] = {{0, 50, 1}, {64, 64, 0}};
  RunScalars scalars;
  int64_t first = 0;
  int threads = 1;
  std::string set = cpu_instruction_set();

  explicit Update(int64_t count = 128) : weights(count), gradient(count), m(count, 0), v(count, 0) {
    for (int64_t i = 0; i < count; ++i) weights[i] = static_cast<T>(std::sin(1.0 + static_cast<double>(i)));
    report[kReportWeight] = 4;
    report[kReportFactor] = 0.5;
    scalars.lr = 0.01;
    scalars.weight_decay = 0.1;
  }
  void fill_gradient(int64_t step) {
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = static_cast<T>(std::cos(0.3 * static_cast<double>(i) + static_cast<double>(step)));
  }
  void run(const std::string& optimizer, int moments, int64_t step) {
    const auto view = [](auto& x, DType dtype) { return make_view(x.data(), dtype, {static_cast<int64_t>(x.size())}); };
    std::vector<TensorView> in = {view(weights, kType), view(gradient, kType), view(report, DType::f64)}, out = {in[0]};
    if (moments > 0) in.push_back(view(m, kType)), out.push_back(in.back());
    if (moments > 1) in.push_back(view(v, kType)), out.push_back(in.back());
    out.push_back(in[1]);
    const Attributes attributes = {{Attr::optimizer, optimizer}};
    const UnitArgs unit{extents, 2, 128, first, static_cast<int64_t>(weights.size())};
    scalars.step = step;
    KernelArgs args;
    args.inputs = in.data();
    args.input_count = static_cast<int>(in.size());
    args.outputs = out.data();
    args.output_count = static_cast<int>(out.size());
    args.attributes = &attributes;
    args.unit = &unit;
    args.scalars = &scalars;
    args.threads = threads;
    cpu_kernel(OpKind::optimizer_update, set)(args);
  }
};

// Closed formulas, one element.
struct Element {
  double p, m = 0, v = 0;
  void step(const std::string& optimizer, double g, double decay, int64_t t, const RunScalars& s) {
    if (optimizer == "adamw")
      p *= 1 - s.lr * decay;
    else
      g += decay * p;
    if (optimizer == "sgd") {
      m = t == 1 ? g : s.momentum * m + g;
      p -= s.lr * (s.momentum != 0 ? m : g);
      return;
    }
    m = s.beta1 * m + (1 - s.beta1) * g;
    v = s.beta2 * v + (1 - s.beta2) * g * g;
    p -= s.lr * (m / (1 - std::pow(s.beta1, t))) / (std::sqrt(v / (1 - std::pow(s.beta2, t))) + s.epsilon);
  }
};

template <typename T>
void expect_formula(const std::string& optimizer, double momentum, double tolerance) {
  const int moments = optimizer != "sgd" ? 2 : momentum != 0 ? 1 : 0;
  for (const std::string& set : instruction_sets()) {
    Update<T> update;
    update.set = set;
    update.scalars.momentum = momentum;
    std::vector<Element> want(128);
    for (int i = 0; i < 128; ++i) want[i].p = update.weights[i];
    for (int64_t t = 1; t <= 5; ++t) {
      update.fill_gradient(t);
      for (int i = 0; i < 128; ++i) want[i].step(optimizer, update.gradient[i] / 4.0 * 0.5, i < 64 ? 0.1 : 0.0, t, update.scalars);
      update.run(optimizer, moments, t);
    }
    for (int i = 0; i < 128; ++i) {
      if (i >= 50 && i < 64) continue;  // padding
      EXPECT_NEAR(update.weights[i], want[i].p, tolerance) << i << " with " << set;
      EXPECT_EQ(update.gradient[i], 0);
    }
  }
}

TEST(Optimizer, AdamwFollowsItsFormula) {
  expect_formula<double>("adamw", 0, 1e-14);
  expect_formula<float>("adamw", 0, 1e-6);
}
TEST(Optimizer, AdamFollowsItsFormula) {
  expect_formula<double>("adam", 0, 1e-14);
  expect_formula<float>("adam", 0, 1e-6);
}
TEST(Optimizer, SgdFollowsItsFormula) {
  expect_formula<double>("sgd", 0, 1e-14);
  expect_formula<double>("sgd", 0.9, 1e-14);
  expect_formula<float>("sgd", 0.9, 1e-6);
}

TEST(Optimizer, ClippedGradientIsExact) {
  Update<float> update;
  std::fill(update.weights.begin(), update.weights.end(), 0.0f);
  std::fill(update.gradient.begin(), update.gradient.end(), 0.0f);
  update.gradient[0] = 3, update.gradient[3] = 4;
  update.report[kReportWeight] = 1;
  update.report[kReportFactor] = 0.2;
  update.scalars.lr = 1;
  update.run("sgd", 0, 1);
  EXPECT_FLOAT_EQ(update.weights[0], -0.6f);
  EXPECT_FLOAT_EQ(update.weights[3], -0.8f);
  EXPECT_EQ(update.weights[1], 0);
}

TEST(Optimizer, SkipKeepsEveryBitAndClearsTheGradient) {
  for (const char* optimizer : {"adamw", "adam", "sgd"}) {
    Update<float> update;
    update.fill_gradient(1);
    update.gradient[7] = NAN;
    update.report[kReportSkip] = 1;
    for (size_t i = 0; i < update.m.size(); ++i) update.m[i] = update.v[i] = 0.25f;
    const std::vector<float> weights = update.weights, m = update.m, v = update.v;
    update.run(optimizer, optimizer[0] == 's' ? 1 : 2, 3);
    EXPECT_EQ(update.weights, weights);
    EXPECT_EQ(update.m, m);
    EXPECT_EQ(update.v, v);
    for (int i = 0; i < 128; ++i) EXPECT_TRUE(update.gradient[i] == 0 || (i >= 50 && i < 64)) << i;
  }
}

TEST(Optimizer, ShardsThreadsAndInstructionSetsGiveTheSameBits) {
  Update<float> whole;
  whole.fill_gradient(1);
  const Update<float> start = whole;
  whole.run("adamw", 2, 1);
  for (const std::string& set : instruction_sets()) {
    for (int shard = 0; shard < 2; ++shard) {
      Update<float> part(64);
      part.first = shard * 64;
      part.threads = 2;
      part.set = set;
      for (int i = 0; i < 64; ++i) {
        part.weights[i] = start.weights[part.first + i];
        part.gradient[i] = start.gradient[part.first + i];
      }
      part.run("adamw", 2, 1);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(part.weights[i], whole.weights[part.first + i]) << i << " with " << set;
    }
  }
}

}  // namespace
}  // namespace zeroplan
