#include "tests/kernels/judge.h"

#include <cmath>

#include <gtest/gtest.h>

namespace zeroplan {

// Steps between neighbouring numbers of 16 bits, of the number itself: what may lie between two roundings of nearly the same.
static double step_of(DType dtype) { return dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : 0; }

// Of the largest magnitude in a tensor, or of 1.
double tolerance(OpKind op, DType dtype) {
  if (dtype == DType::f64) return 2e-12;
  switch (op) {
    case OpKind::matmul:
    case OpKind::conv:
    case OpKind::conv_grad_input:
    case OpKind::conv_grad_weight:
    case OpKind::attention:
    case OpKind::attention_grad:
    case OpKind::layer_norm_grad:
    case OpKind::rms_norm_grad: return 1e-5;
    case OpKind::pow:
    case OpKind::elementwise:
    case OpKind::reduce_sum:
    case OpKind::reduce_mean:
    case OpKind::layer_norm: return 4e-6;
    default: return 2e-6;
  }
}

double tolerance_of(const CaseGraph& built) {
  return tolerance(built.node.op, built.graph.value(built.node.outputs[0]).dtype == DType::f64 ? DType::f64 : DType::f32);
}

static void expect_close(const HostTensor& got, const HostTensor& want, double tolerance) {
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_EQ(got.dtype(), want.dtype());
  for (int64_t i = 0; i < got.count(); ++i) {
    const double g = got.get(i), w = want.get(i);
    if (!std::isfinite(w) || !is_floating(want.dtype())) {
      ASSERT_TRUE(g == w || (std::isnan(g) && std::isnan(w))) << "element " << i << ": " << g << " is not " << w;
    } else {
      ASSERT_LE(std::fabs(g - w), tolerance * std::max(1.0, std::fabs(w)) + step_of(want.dtype()) * std::fabs(w))
          << "element " << i << ": " << g << " is not " << w;
    }
  }
}

void expect_all_close(const std::vector<HostTensor>& got, const std::vector<HostTensor>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expect_close(got[i], want[i], tolerance);
  }
}

void expect_same_bits(const std::vector<HostTensor>& got, const std::vector<HostTensor>& want) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i] == want[i]) << "output " << i << " differs in its bits";
}

std::vector<OpCase> kernel_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& op_case : op_cases()) {
    if (op_class(op_case.op) == OpClass::kernel) cases.push_back(op_case);
  }
  return cases;
}

void PrintTo(const OpCase& op_case, std::ostream* out) { *out << op_case.name; }

}  // namespace zeroplan
