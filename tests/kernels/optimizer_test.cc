// optimizer_update against PyTorch's formulas in double.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#define ZP_KERNEL_NAMESPACE kernels_test
#include "kernels/scalar/optimizer.h"
#include "tests/kernels/step_call.h"

namespace zeroplan {
namespace {

// One unit of two parameters with a gap, updated by one rank.
template <typename T>
struct Update {
  static constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;
  std::vector<T> weights, gradient, m, v;
  std::vector<double> report = std::vector<double>(kReportFields, 0);
  std::vector<UnitExtent> extents = {{0, 50, 1}, {64, 64, 0}};
  RunScalars scalars;
  int64_t first = 0, shift = 0;  // elements of the unit before the buffers; of the buffers before what is updated
  int threads = 1;
  TestDevice device;

  explicit Update(TestDevice where, int64_t count = 128)
      : weights(count), gradient(count), m(count, 0), v(count, 0), device(std::move(where)) {
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
    const int64_t covered = static_cast<int64_t>(weights.size()) - shift;
    const auto view = [&](std::vector<T>& x) { return make_view(x.data() + shift, kType, {covered}); };
    std::vector<TensorView> in = {view(weights), view(gradient), make_view(report.data(), DType::f64, {kReportFields})}, out = {in[0]};
    if (moments > 0) in.push_back(view(m)), out.push_back(in.back());
    if (moments > 1) in.push_back(view(v)), out.push_back(in.back());
    out.push_back(in[1]);
    const Attributes attributes = {{Attr::optimizer, optimizer}};
    const UnitArgs unit{extents.data(), static_cast<int>(extents.size()), extents.back().offset + extents.back().elements, first, covered};
    scalars.step = step;
    StepCall{std::move(in), std::move(out), attributes, scalars, unit, threads}.run(device, OpKind::optimizer_update);
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
void expect_formula(const TestDevice& device, const std::string& optimizer, double momentum, double tolerance) {
  const int moments = optimizer != "sgd" ? 2 : momentum != 0 ? 1 : 0;
  Update<T> update(device);
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
    EXPECT_NEAR(update.weights[i], want[i].p, tolerance) << i;
    EXPECT_EQ(update.gradient[i], 0);
  }
}

class Optimizer : public testing::TestWithParam<TestDevice> {};
INSTANTIATE_TEST_SUITE_P(All, Optimizer, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(Optimizer, AdamwFollowsItsFormula) {
  expect_formula<double>(GetParam(), "adamw", 0, 1e-14);
  expect_formula<float>(GetParam(), "adamw", 0, 1e-6);
}
TEST_P(Optimizer, AdamFollowsItsFormula) {
  expect_formula<double>(GetParam(), "adam", 0, 1e-14);
  expect_formula<float>(GetParam(), "adam", 0, 1e-6);
}
TEST_P(Optimizer, SgdFollowsItsFormula) {
  expect_formula<double>(GetParam(), "sgd", 0, 1e-14);
  expect_formula<double>(GetParam(), "sgd", 0.9, 1e-14);
  expect_formula<float>(GetParam(), "sgd", 0.9, 1e-6);
}

TEST_P(Optimizer, ClippedGradientIsExact) {
  Update<float> update(GetParam());
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

TEST_P(Optimizer, SkipKeepsEveryBitAndClearsTheGradient) {
  for (const char* optimizer : {"adamw", "adam", "sgd"}) {
    Update<float> update(GetParam());
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

// Three steps of two shards, of a rank count and on a device that are not those of the whole buffer.
template <typename T>
void expect_same_bits_of_shards(const TestDevice& device, const std::string& optimizer, int moments) {
  constexpr int64_t kShard = 64 * 400;
  const std::vector<UnitExtent> extents = {{0, 50, 1}, {64, 64 * 300 + 5, 0}, {64 * 302, 1, 1}, {64 * 303, 2 * kShard - 64 * 303 - 3, 0.5}};
  const auto prepare = [&](Update<T>& update, int64_t first, int64_t t) {
    update.extents = extents;
    update.first = first;
    update.scalars.momentum = moments == 1 ? 0.9 : 0;
    for (size_t i = 0; i < update.gradient.size(); ++i)
      update.gradient[i] = static_cast<T>(std::cos(0.3 * static_cast<double>(first + static_cast<int64_t>(i)) + static_cast<double>(t)));
  };
  Update<T> whole(cpu_device("baseline"), 2 * kShard);
  std::vector<Update<T>> parts(2, Update<T>(device, kShard));
  for (int64_t i = 0; i < 2 * kShard; ++i) parts[i / kShard].weights[i % kShard] = whole.weights[i];
  for (int64_t t = 1; t <= 3; ++t) {
    prepare(whole, 0, t);
    whole.run(optimizer, moments, t);
    for (int shard = 0; shard < 2; ++shard) {
      parts[shard].threads = 2;
      prepare(parts[shard], shard * kShard, t);
      parts[shard].run(optimizer, moments, t);
    }
  }
  const auto expect_part = [&](const std::vector<T>& all, const std::vector<T>& part, int64_t first) {
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + first)) << "from element " << first;
  };
  for (int shard = 0; shard < 2; ++shard) {
    expect_part(whole.weights, parts[shard].weights, shard * kShard);
    expect_part(whole.gradient, parts[shard].gradient, shard * kShard);
    expect_part(whole.m, parts[shard].m, shard * kShard);
    expect_part(whole.v, parts[shard].v, shard * kShard);
  }
}

TEST_P(Optimizer, ShardsThreadsAndDevicesGiveTheSameBits) {
  for (const auto& [optimizer, moments] : std::vector<std::pair<std::string, int>>{{"adamw", 2}, {"adam", 2}, {"sgd", 0}, {"sgd", 1}}) {
    SCOPED_TRACE(optimizer);
    expect_same_bits_of_shards<float>(GetParam(), optimizer, moments);
    expect_same_bits_of_shards<double>(GetParam(), optimizer, moments);
  }
}

// Buffers that begin on no 16-byte border.
TEST_P(Optimizer, UnalignedBuffersGiveTheSameBits) {
  Update<float> aligned(GetParam(), 127), shifted(GetParam(), 128);
  aligned.fill_gradient(1);
  shifted.shift = 1;
  aligned.extents = shifted.extents = {{0, 50, 1}, {64, 63, 0}};
  std::copy(aligned.weights.begin(), aligned.weights.end(), shifted.weights.begin() + 1);
  std::copy(aligned.gradient.begin(), aligned.gradient.end(), shifted.gradient.begin() + 1);
  const float before = shifted.weights[0];
  aligned.run("adamw", 2, 1);
  shifted.run("adamw", 2, 1);
  EXPECT_EQ(shifted.weights[0], before);
  for (int i = 0; i < 127; ++i) EXPECT_TRUE(aligned.weights[i] == shifted.weights[i + 1] && aligned.v[i] == shifted.v[i + 1]) << i;
}

// β^t is the power, rounded: PyTorch takes it from the C library.
TEST(WholePower, IsTheRoundedPower) {
  for (const double beta : {0.9, 0.95, 0.999, 0.9999, 0.5, 0.0})
    for (const int64_t t : {1, 2, 3, 7, 10, 100, 999, 4096, 123457})
      EXPECT_EQ(kernels_test::whole_power(beta, t),
                static_cast<double>(std::pow(static_cast<long double>(beta), static_cast<long double>(t))));
}

}  // namespace
}  // namespace zeroplan
