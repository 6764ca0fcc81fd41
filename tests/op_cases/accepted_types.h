#pragma once
// Which element types an operator works on, by its own rule.
#include "tests/op_cases/cases.h"

namespace zeroplan {

// The types that the op accepts for the case's `real` operands; none where it has no such operand.
std::vector<DType> accepted_types(const OpCase& op_case);

// One case of every op that has `real` operands, without special values: it can be built in each accepted type.
std::vector<OpCase> typed_cases();

// The case in one of them; operands above zero are above zero among integers too: they may be divisors.
CaseGraph build_typed(OpCase op_case, DType dtype, uint64_t seed);

}  // namespace zeroplan
