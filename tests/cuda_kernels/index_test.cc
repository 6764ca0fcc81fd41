// gather, gather_grad, scatter: many indices, long runs of equal ones, indices outside of the table.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cuda_kernels/sized_case.h"
#include "tests/kernels/judge.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

Attributes axis(int64_t axis) { return {{Attr::axis, axis}}; }
Attributes table(int64_t axis, Shape shape) { return {{Attr::axis, axis}, {Attr::shape, std::move(shape)}}; }
Attributes shared(int64_t axis, Shape shape) {
  return {{Attr::axis, axis}, {Attr::axes, std::vector<int64_t>{0}}, {Attr::shape, std::move(shape)}};
}
Attributes by(const char* reduction) { return {{Attr::reduction, std::string(reduction)}}; }

TEST(CudaGather, RowsOfEveryWidth) {
  for (const int64_t inner : {1, 2, 3, 4, 64, 130, 768}) {
    SCOPED_TRACE(inner);
    check_on_device({"rows", OpKind::gather, {real({50, inner}), ints({333}, -50, 50)}, axis(0)});
    check_on_device({"bytes", OpKind::gather, {ints({50, inner}, 0, 100, DType::u8), ints({33}, 0, 50, DType::i32)}, axis(0)});
  }
  check_on_device({"middle", OpKind::gather, {real({7, 30, 12}), ints({5, 9}, -30, 30)}, axis(1)});
  check_on_device({"nothing", OpKind::gather, {real({7, 3}), ints({0}, 0, 1)}, axis(0)});
  check_on_device({"no_columns", OpKind::gather, {real({7, 0}), ints({4}, 0, 7)}, axis(0)});
}

TEST(CudaGatherGrad, ManyIndices) {
  check_on_device({"words", OpKind::gather_grad, {real({5000, 8}, -0.1, 0.1), ints({5000}, 0, 70000)}, table(0, {70000, 8})});
  check_on_device({"two_rows", OpKind::gather_grad, {real({4100, 5}, -0.02, 0.02), ints({4100}, 0, 2)}, table(0, {2, 5})});
  check_on_device({"one_row", OpKind::gather_grad, {real({77, 64}, -0.1, 0.1), ints({77}, 0, 1)}, table(0, {1, 64})});
  check_on_device({"middle", OpKind::gather_grad, {real({3, 2050, 4}), ints({2050}, -300, 300)}, table(1, {3, 300, 4})});
  check_on_device({"shared", OpKind::gather_grad, {real({5, 3, 700, 2}), ints({5, 700}, -90, 90)}, shared(2, {5, 3, 90, 2})});
  check_on_device({"nothing", OpKind::gather_grad, {real({0, 4}), ints({0}, 0, 1)}, table(0, {9, 4})});
  check_on_device({"no_columns", OpKind::gather_grad, {real({4, 0}), ints({4}, 0, 7)}, table(0, {7, 0})});
}

TEST(CudaScatter, LongRunsInOrder) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    SCOPED_TRACE(reduction);
    const double low = reduction[1] == 'u' ? 0.99 : -1, high = reduction[1] == 'u' ? 1.01 : 1;
    check_on_device(
        {"runs", OpKind::scatter, {real({300, 12}, low, high), ints({3000}, -300, 300), real({3000, 12}, low, high)}, by(reduction)});
    check_on_device(
        {"batch", OpKind::scatter, {real({3, 7, 5}, low, high), ints({3, 900}, 0, 7), real({3, 900, 5}, low, high)}, by(reduction)});
  }
}

// The CPU kernels join in the order of the positions too.
TEST(CudaScatter, SameBitsAsTheCpuKernels) {
  const OpCase cases[] = {
      {"grad", OpKind::gather_grad, {real({4100, 6}), ints({4100}, 0, 40)}, table(0, {40, 6})},
      {"add", OpKind::scatter, {real({40, 6}), ints({4100}, 0, 40), real({4100, 6})}, by("add")},
      {"write", OpKind::scatter, {real({40, 6}), ints({4100}, 0, 40), real({4100, 6})}, by("none")},
  };
  for (const OpCase& op_case : cases)
    for (const DType precision : {DType::f32, DType::f64}) {
      const CaseGraph built = build_case(op_case, precision, 5);
      RunOptions cpu{cpu_device("baseline")};
      expect_same_bits(device_outputs(built), run_case(built, cpu));
    }
}

TEST(CudaIndices, OutsideOfTheTableIsReported) {
  const OpCase cases[] = {
      {"gather", OpKind::gather, {real({5, 3}), listed({3}, {1, 5, 2})}, axis(0)},
      {"gather_below", OpKind::gather, {real({5, 4}), listed({3}, {1, -6, 2}, DType::i32)}, axis(0)},
      {"gather_empty", OpKind::gather, {real({0, 4}), listed({2}, {0, 0})}, axis(0)},
      {"grad", OpKind::gather_grad, {real({3, 4}), listed({3}, {1, 5, 2})}, table(0, {5, 4})},
      {"scatter", OpKind::scatter, {real({5, 3}), listed({3}, {1, 7, 2}), real({3, 3})}, by("add")},
      {"scatter_far", OpKind::scatter, {real({2, 5, 3}), listed({2, 1}, {1LL << 40, 0}), real({2, 1, 3})}, by("none")},
  };
  for (const OpCase& op_case : cases) {
    SCOPED_TRACE(op_case.name);
    const CaseGraph built = build_case(op_case, DType::f32, 5);
    EXPECT_THROW(device_outputs(built), Error);
  }
}

}  // namespace
}  // namespace zeroplan
