#pragma once
// Which element types an operator works on, by its own rule.
#include "tests/op_cases/cases.h"

namespace zeroplan {

// The types that the op accepts for the case's `real` operands: floating-point ones alone where it states their values, which may be
// fractions or nan. None where it has no such operand.
std::vector<DType> accepted_types(const OpCase& op_case);

// One case of every op that has `real` operands, without stated values where there is one.
std::vector<OpCase> typed_cases();

// The case in one of them; operands above zero are above zero among integers too: they may be divisors.
CaseGraph build_typed(OpCase op_case, DType dtype, uint64_t seed);

}  // namespace zeroplan
