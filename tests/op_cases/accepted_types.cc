#include "tests/op_cases/accepted_types.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace zeroplan {

namespace {

bool follows_precision(const TensorSpec& spec) { return spec.dtype == DType::f32 && !spec.absent; }

bool has_real_operands(const OpCase& op_case) { return std::any_of(op_case.inputs.begin(), op_case.inputs.end(), follows_precision); }

bool states_values(const OpCase& op_case) {
  return std::any_of(op_case.inputs.begin(), op_case.inputs.end(),
                     [](const TensorSpec& spec) { return follows_precision(spec) && !spec.values.empty(); });
}

}  // namespace

std::vector<DType> accepted_types(const OpCase& op_case) {
  std::vector<DType> types;
  if (!has_real_operands(op_case)) return types;
  for (const DType dtype : kDTypes) {
    if (states_values(op_case) && !is_floating(dtype)) continue;
    try {
      build_case(op_case, dtype, 1);
      types.push_back(dtype);
    } catch (const Error&) {  // refused by infer
    }
  }
  return types;
}

std::vector<OpCase> typed_cases() {
  std::vector<OpCase> cases;
  std::set<OpKind> seen;
  for (const bool stated : {false, true})
    for (const OpCase& op_case : op_cases())
      if (op_class(op_case.op) == OpClass::kernel && has_real_operands(op_case) && states_values(op_case) == stated &&
          seen.insert(op_case.op).second)
        cases.push_back(op_case);
  return cases;
}

CaseGraph build_typed(OpCase op_case, DType dtype, uint64_t seed) {
  for (TensorSpec& spec : op_case.inputs)
    if (follows_precision(spec) && !is_floating(dtype) && spec.low > 0) {
      spec.low = std::ceil(spec.low);
      spec.high = std::max(spec.high, spec.low + 4);
    }
  return build_case(op_case, dtype, seed);
}

}  // namespace zeroplan
