// Every type that an operator accepts has a kernel that works on it.
#include <gtest/gtest.h>

#include "tests/kernels/judge.h"
#include "tests/kernels/runner.h"
#include "tests/op_cases/accepted_types.h"

namespace zeroplan {
namespace {

class Types : public testing::TestWithParam<TestDevice> {};
INSTANTIATE_TEST_SUITE_P(All, Types, testing::ValuesIn(test_devices()), testing::PrintToStringParamName());

TEST_P(Types, EachAcceptedOneHasAKernel) {
  int types = 0;
  for (const OpCase& op_case : typed_cases()) {
    for (const DType dtype : accepted_types(op_case)) {
      SCOPED_TRACE(std::string(op_case.name) + " " + std::string(dtype_name(dtype)));
      const CaseGraph built = build_typed(op_case, dtype, 9);
      RunOptions options{GetParam()};
      try {
        expect_all_close(run_case(built, options), reference_outputs(built),
                         tolerance(op_case.op, dtype == DType::f64 ? dtype : DType::f32));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      ++types;
    }
  }
  EXPECT_GT(types, 300);
}

}  // namespace
}  // namespace zeroplan
