// cumsum, arg_max and top_k along lines that cross a block's share, with equal elements and not-a-number.
#include <gtest/gtest.h>

#include "tests/cuda_kernels/sized_case.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

Attributes along(int64_t axis) { return {{Attr::axis, axis}}; }
Attributes sums(int64_t axis, int64_t exclusive, int64_t reverse) {
  return {{Attr::axis, axis}, {Attr::exclusive, exclusive}, {Attr::reverse, reverse}};
}
Attributes best(int64_t axis, int64_t k, int64_t largest) { return {{Attr::axis, axis}, {Attr::k, k}, {Attr::largest, largest}}; }

TEST(CudaCumsum, LinesAroundATile) {
  for (const int64_t n : {1, 255, 1023, 1024, 1025, 4099})
    for (const int64_t way : {0, 1, 2, 3}) {
      SCOPED_TRACE(n);
      check_on_device({"rows", OpKind::cumsum, {real({3, n}, -0.1, 0.1)}, sums(1, way % 2, way / 2)});
      check_on_device({"integers", OpKind::cumsum, {ints({2, n}, -9, 9, DType::i32)}, sums(1, way % 2, way / 2)});
    }
  check_on_device({"columns", OpKind::cumsum, {real({3, 40, 301}, -0.1, 0.1)}, sums(1, 0, 1)});
  check_on_device({"nothing", OpKind::cumsum, {real({3, 0})}, sums(1, 0, 1)});
  check_on_device({"many_rows", OpKind::cumsum, {real({5000, 3})}, sums(1, 0, 0)});
}

TEST(CudaArgMax, LongLinesWithEqualElements) {
  for (const DType dtype : {DType::i64, DType::u8, DType::i16, DType::u64})
    for (const int64_t last : {0, 1})
      for (const Shape& shape : {Shape{3, 5001}, {700, 17}, {1, 33}}) {
        Attributes attributes = along(1);
        attributes.set(Attr::select_last, last);
        check_on_device({"ties", OpKind::arg_max, {ints(shape, 0, 4, dtype)}, attributes});
      }
  check_on_device({"real", OpKind::arg_max, {real({9, 1000})}, along(1)});
  check_on_device({"columns", OpKind::arg_max, {real({4, 30, 500})}, along(1)});
}

TEST(CudaTopK, LinesOfOneAndOfSeveralPieces) {
  for (const int64_t size : {1, 2, 8, 33, 1023, 1024, 1025, 3000})
    for (const int64_t k : {1, 2, 7, 64, 1024, 1500, 3000}) {
      if (k > size) continue;
      SCOPED_TRACE(std::to_string(k) + " of " + std::to_string(size));
      check_on_device({"top", OpKind::top_k, {real({3, size})}, best(1, k, k % 2)});
      check_on_device({"ties", OpKind::top_k, {ints({2, size}, 0, 9, DType::i32)}, best(1, k, (k + 1) % 2)});
    }
  check_on_device({"columns", OpKind::top_k, {real({2, 2050, 3})}, best(1, 40, 1)});
  check_on_device({"many_lines", OpKind::top_k, {real({3000, 6})}, best(1, 2, 1)});
  check_on_device({"five_pieces", OpKind::top_k, {ints({2, 4500}, 0, 100)}, best(1, 4500, 1)});
}

TEST(CudaTopK, NotANumberInSeveralPieces) {
  std::vector<double> x(2500);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(i % 50);
  for (const int64_t largest : {0, 1}) check_on_device({"nan", OpKind::top_k, {reals({2500}, x)}, best(0, 2000, largest)});
}

}  // namespace
}  // namespace zeroplan
