// Copies of sizes around tiles and pieces, of every width; reductions around blocks and chunks.
#include <gtest/gtest.h>

#include "graph/ops/cuda_reduce_chunks.h"
#include "tests/cuda_kernels/sized_case.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

using Ints = std::vector<int64_t>;

Attributes over(Ints axes) { return {{Attr::axes, std::move(axes)}, {Attr::keepdims, int64_t{0}}}; }

TEST(CudaCopy, SizesAroundTilesInEveryWidth) {
  for (const DType dtype : {DType::u8, DType::i16, DType::f32, DType::i64}) {
    const TensorSpec like = dtype == DType::f32 ? real({1}) : ints({1}, 0, 100, dtype);
    for (const Shape& shape : {Shape{33, 65}, {64, 64}, {16, 17}, {2, 130, 31}, {3, 40, 5, 50}, {70001}, {1, 1}, {0, 5}, {5, 0, 3}}) {
      SCOPED_TRACE(to_string(shape));
      TensorSpec x = like;
      x.shape = shape;
      check_on_device({"copy", OpKind::copy, {x}});
    }
  }
}

TEST(CudaCopy, ConcatOfUnevenParts) {
  check_on_device({"last", OpKind::concat, {real({130, 64}), real({130, 3}), real({130, 0}), real({130, 33})}, {{Attr::axis, int64_t{1}}}});
  check_on_device({"first", OpKind::concat, {real({7, 1000}), real({1, 1000})}, {{Attr::axis, int64_t{0}}}});
  check_on_device({"bytes", OpKind::concat, {booleans({50, 7}), booleans({50, 16})}, {{Attr::axis, int64_t{-1}}}});
}

TEST(CudaCopy, GradientsOfSlices) {
  const auto slice = [](Shape shape, Ints starts, Ints steps) {
    return Attributes{{Attr::shape, std::move(shape)}, {Attr::starts, std::move(starts)}, {Attr::steps, std::move(steps)}};
  };
  check_on_device({"thirds", OpKind::slice_grad, {real({2, 35, 64})}, slice({2, 35, 192}, {0, 0, 64}, {1, 1, 1})});
  check_on_device({"back", OpKind::slice_grad, {real({40, 50})}, slice({80, 103}, {79, 1}, {-2, 2})});
  check_on_device({"nothing", OpKind::slice_grad, {real({0, 50})}, slice({80, 103}, {0, 1}, {1, 2})});
}

TEST(CudaFill, OddCounts) {
  for (const DType dtype : kDTypes)
    for (const int64_t n : {0, 1, 5, 255, 70001})
      check_on_device({"fill", OpKind::fill, {}, {{Attr::value, 3.0}, {Attr::shape, Shape{n}}, {Attr::dtype, dtype_value(dtype)}}});
}

TEST(CudaReduce, RowsColumnsAndGeneralAxes) {
  for (const OpKind op : {OpKind::reduce_sum, OpKind::reduce_mean, OpKind::reduce_max}) {
    for (const int64_t n : {1, 16, 17, 33, 255, 257, 5003}) {
      SCOPED_TRACE(n);
      check_on_device({"rows", op, {real({3, n})}, over({1})});
      check_on_device({"columns", op, {real({n, 3})}, over({0})});
      check_on_device({"wide_columns", op, {real({n, 45})}, over({0})});
    }
    check_on_device({"outer", op, {real({9, 37, 50})}, over({0, 2})});
    check_on_device({"middle", op, {real({9, 77, 40})}, over({1})});
    check_on_device({"pairs", op, {real({6, 5, 70, 3})}, over({1, 3})});
    check_on_device({"every_row", op, {real({300, 20, 20})}, over({1, 2})});
  }
}

TEST(CudaReduce, SeveralChunks) {
  for (const OpKind op : {OpKind::reduce_sum, OpKind::reduce_mean, OpKind::reduce_max}) {
    check_on_device({"all", op, {real({70001}, -0.1, 0.1)}, over({0})});
    check_on_device({"columns", op, {real({5000, 40}, -0.2, 0.2)}, over({0})});
    check_on_device({"two", op, {real({2, 40003}, -0.1, 0.1)}, over({1})});
    check_on_device({"integers", op == OpKind::reduce_mean ? OpKind::reduce_sum : op, {ints({70001}, -9, 9)}, over({0})});
    check_on_device({"i32", op == OpKind::reduce_mean ? OpKind::reduce_sum : op, {ints({70001}, -9, 9, DType::i32)}, over({0})});
  }
  check_on_device({"factors", OpKind::reduce_prod, {real({20000, 3}, 0.999, 1.001)}, over({0})});
}

TEST(CudaReduce, NotANumberWins) {
  std::vector<double> x(40000, 1.0);
  x[31234] = std::numeric_limits<double>::quiet_NaN();
  check_on_device({"nan", OpKind::reduce_max, {reals({2, 20000}, x)}, over({1})});
  check_on_device({"nan_columns", OpKind::reduce_max, {reals({20000, 2}, x)}, over({0})});
}

// Every element is in one chunk, and no grid is larger than a device takes.
TEST(CudaReduce, ChunksCoverEverything) {
  for (const int64_t kept : {1, 2, 31, 33, 768, 50257, 1 << 20})
    for (const int64_t reduced : {0, 1, 15, 17, 1000, 8192, 1 << 24})
      for (const bool across : {false, true}) {
        const ReduceChunks c = reduce_chunks(kept, reduced, across);
        EXPECT_GE(c.chunk * c.chunks, reduced);
        EXPECT_LT(c.chunk * (c.chunks - 1), std::max<int64_t>(reduced, 1));
        EXPECT_LE(c.chunks, 65535);
        EXPECT_EQ(kReduceThreads % c.lanes, 0);
        EXPECT_LE(c.chunks > 1 ? c.chunks * kept * 8 : 0, cuda_reduce_workspace(kept, reduced));
      }
}

}  // namespace
}  // namespace zeroplan
