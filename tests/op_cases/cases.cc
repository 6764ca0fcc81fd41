#include "tests/op_cases/cases.h"

#include "tests/op_cases/case_lists.h"

namespace zeroplan {

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> cases;
    for (const CaseList& family : {unary_cases(), binary_cases(), elementwise_cases(), reduce_cases(), movement_cases(), matmul_cases(),
                                   row_cases(), attention_cases(), index_cases(), spatial_cases()})
      cases.insert(cases.end(), family.begin(), family.end());
    return cases;
  }();
  return all;
}

}  // namespace zeroplan
