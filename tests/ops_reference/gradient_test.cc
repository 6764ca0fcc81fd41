// Every vjp, built by Builder and evaluated in f64, against central differences of the reference evaluator.
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/op_cases/cases.h"

namespace zeroplan {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;

// What flows back: fixed weights per output element, for the outputs that carry a gradient.
struct Seeds {
  std::vector<HostTensor> weights;  // empty tensor: no gradient flows into this output
};

bool carries_gradient(const OpCase& op_case, const HostTensor& output, size_t index) {
  const bool more = (op_case.op == OpKind::cross_entropy && index == 2) || op_case.op == OpKind::batch_norm;
  return is_floating(output.dtype()) && (index == 0 || more);
}

Seeds make_seeds(const OpCase& op_case, const std::vector<HostTensor>& outputs) {
  Seeds seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostTensor weight;
    if (carries_gradient(op_case, outputs[i], i)) {
      weight = HostTensor(outputs[i].dtype(), outputs[i].shape());
      for (int64_t k = 0; k < weight.count(); ++k) weight.set(k, 0.25 + std::cos(1.7 * static_cast<double>(k + 1)));
    }
    seeds.weights.push_back(std::move(weight));
  }
  return seeds;
}

double weighted_sum(const CaseGraph& built, const Seeds& seeds) {
  const std::vector<HostTensor> outputs = reference_outputs(built);
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i)
    for (int64_t k = 0; k < seeds.weights[i].count(); ++k) sum += seeds.weights[i].get(k) * outputs[i].get(k);
  return sum;
}

double central_difference(CaseGraph built, const Seeds& seeds, ValueId id, int64_t element) {
  HostTensor& operand = built.values.at(id);
  const double x = operand.get(element);
  operand.set(element, x + kStep);
  const double above = weighted_sum(built, seeds);
  operand.set(element, x - kStep);
  return (above - weighted_sum(built, seeds)) / (2 * kStep);
}

// Gradients of the operands; empty where the vjp says that they are zero.
std::vector<HostTensor> vjp_gradients(CaseGraph built, const OpCase& op_case, const Seeds& seeds) {
  Builder build(built.graph);
  build.origin = op_case.name;
  std::vector<ValueId> output_gradients;
  for (const HostTensor& weight : seeds.weights) output_gradients.push_back(weight.data() ? build.constant(weight) : kNone);
  std::vector<bool> needs;
  for (const TensorSpec& spec : op_case.inputs)
    needs.push_back(spec.dtype == DType::f32 && spec.gradient && !spec.constant && !spec.absent);
  const Node node = built.node;
  VjpContext context(build, node, output_gradients, needs);
  op_def(op_case.op).vjp(context);
  evaluate_program(built.graph, Program::micro_step, built.values);
  std::vector<HostTensor> gradients;
  for (const ValueId id : context.gradients()) {
    if (id == kNone)
      gradients.emplace_back();
    else
      gradients.push_back(built.graph.value(id).kind == ValueKind::constant ? built.graph.value(id).constant : built.values.at(id));
  }
  return gradients;
}

class GradientTest : public testing::TestWithParam<OpCase> {};

TEST_P(GradientTest, MatchesCentralDifferences) {
  const OpCase& op_case = GetParam();
  ASSERT_NE(op_def(op_case.op).vjp, nullptr);
  const CaseGraph built = build_case(op_case, DType::f64, 7);
  const Seeds seeds = make_seeds(op_case, reference_outputs(built));
  const std::vector<HostTensor> gradients = vjp_gradients(built, op_case, seeds);
  double largest = 0;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const TensorSpec& spec = op_case.inputs[i];
    if (spec.dtype != DType::f32 || !spec.gradient || spec.constant || spec.absent) continue;
    const bool zero = gradients[i].data() == nullptr;
    if (!zero) {
      ASSERT_EQ(gradients[i].shape(), spec.shape);
    }
    for (int64_t k = 0; k < elements(spec.shape); ++k) {
      const double expected = central_difference(built, seeds, built.node.inputs[i], k);
      const double given = zero ? 0 : gradients[i].get(k);
      EXPECT_NEAR(given, expected, kTolerance * (1 + std::fabs(expected))) << "operand " << i << ", element " << k;
      largest = std::max(largest, std::fabs(given));
    }
  }
  if (op_case.zero_gradient) {
    EXPECT_EQ(largest, 0);
  } else {
    EXPECT_GT(largest, 1e-3) << "a gradient of zeros proves nothing";
  }
}

// In 16 bits: each gradient has its operand's type, and is that of the same numbers in double, but for the roundings on the way.
TEST_P(GradientTest, AgreesIn16Bits) {
  const OpCase& op_case = GetParam();
  for (const DType half : {DType::f16, DType::bf16}) {
    const CaseGraph built = build_case(op_case, half, 7);
    CaseGraph exact = build_case(op_case, DType::f64, 7);
    for (auto& [id, tensor] : exact.values)
      if (is_floating(tensor.dtype())) tensor = built.values.at(id).cast(DType::f64);
    const Seeds seeds = make_seeds(op_case, reference_outputs(built));
    Seeds exact_seeds;
    const std::vector<HostTensor> exact_outputs = reference_outputs(exact);
    for (size_t i = 0; i < seeds.weights.size(); ++i)
      exact_seeds.weights.push_back(seeds.weights[i].data() ? seeds.weights[i].cast(exact_outputs[i].dtype()) : HostTensor());
    const std::vector<HostTensor> got = vjp_gradients(built, op_case, seeds), want = vjp_gradients(exact, op_case, exact_seeds);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].data() == nullptr, want[i].data() == nullptr);
      if (!got[i].data()) continue;
      ASSERT_EQ(got[i].dtype(), built.values.at(built.node.inputs[i]).dtype());
      double largest = 1;
      for (int64_t k = 0; k < want[i].count(); ++k) largest = std::max(largest, std::fabs(want[i].get(k)));
      for (int64_t k = 0; k < got[i].count(); ++k)
        ASSERT_NEAR(got[i].get(k), want[i].get(k), (half == DType::f16 ? 0x1p-8 : 0x1p-5) * largest)
            << "operand " << i << ", element " << k;
    }
  }
}

std::vector<OpCase> differentiable_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& each : op_cases())
    if (each.differentiable) cases.push_back(each);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(differentiable_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
