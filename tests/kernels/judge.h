#pragma once
// How close a kernel has to come to the op's reference evaluator.
#include <ostream>
#include <vector>

#include "tests/op_cases/cases.h"

namespace zeroplan {

// Of the larger of an element's magnitude and 1, for a kernel that computes in `dtype`.
double tolerance(OpKind op, DType dtype);
double tolerance_of(const CaseGraph& built);  // whatever its type of storage
void expect_all_close(const std::vector<HostTensor>& got, const std::vector<HostTensor>& want, double tolerance);
void expect_same_bits(const std::vector<HostTensor>& got, const std::vector<HostTensor>& want);

// What cases are built with.
inline constexpr uint64_t kCaseSeed = 7;
inline constexpr DType kCasePrecisions[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

// The cases of ops that have a kernel.
std::vector<OpCase> kernel_cases();
void PrintTo(const OpCase& op_case, std::ostream* out);

}  // namespace zeroplan
