// Libraries' own thread pools stay out of a run: --threads alone decides.
#include <cblas.h>

#include <gtest/gtest.h>

#include "tests/e2e_support/golden.h"

namespace zeroplan {
namespace {

TEST(LibraryThreads, OpenBlasRunsOnTheCallingThread) {
  openblas_set_num_threads(2);
  Golden golden = read_golden("mlp", "golden");
  golden.run.steps = 1;
  golden.compile.precision = DType::f64;
  run_golden("mlp", golden, golden.compile);
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

}  // namespace
}  // namespace zeroplan
