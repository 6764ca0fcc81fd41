#include "base/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/tensor_view.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, CountsElements) {
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({2, 3, 4}), 24);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(elements({huge, huge, 0}), 0);
  EXPECT_THROW(elements({huge, huge}), Error);
  EXPECT_THAT([] { elements({2, -1}); }, ThrowsMessage<Error>(HasSubstr("[2,-1]")));
  EXPECT_THROW(elements({0, -1}), Error);
}

TEST(Shape, ContiguousStridesIgnoreAxesOfSizeOne) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_TRUE(is_contiguous({2, 3, 4}, {12, 4, 1}));
  EXPECT_TRUE(is_contiguous({2, 1, 4}, {4, 99, 1}));
  EXPECT_FALSE(is_contiguous({3, 4}, {1, 3}));
  EXPECT_FALSE(is_contiguous({3, 4}, {0, 1}));
  EXPECT_TRUE(is_contiguous({0, 4}, {7, 7}));
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {5}), (Shape{5}));
  EXPECT_EQ(broadcast_shapes({0}, {1}), (Shape{0}));
  EXPECT_THAT([] { broadcast_shapes({2, 3}, {4}); }, ThrowsMessage<Error>(HasSubstr("[2,3] and [4]")));
}

TEST(Shape, NormalizesAxes) {
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(2, 3), 2);
  EXPECT_THROW(normalize_axis(3, 3), Error);
  EXPECT_THROW(normalize_axis(-4, 3), Error);
  EXPECT_THROW(normalize_axis(0, 0), Error);
}

TEST(DType, NamesReadBack) {
  for (DType dtype : kDTypes) EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  EXPECT_THAT([] { parse_dtype("f8"); }, ThrowsMessage<Error>(HasSubstr("'f8'")));
  EXPECT_EQ(dtype_bytes(DType::boolean), 1);
  EXPECT_EQ(dtype_bytes(DType::i64), 8);
  EXPECT_EQ(dtype_bytes(DType::bf16), 2);
}

TEST(TensorView, RefusesMoreAxesThanItHolds) {
  float data = 0;
  EXPECT_EQ(make_view(&data, DType::f32, Shape(8, 1)).rank, 8);
  EXPECT_THROW(make_view(&data, DType::f32, Shape(9, 1)), Error);
}

TEST(TensorView, KnowsWhetherItIsContiguous) {
  float data[6] = {};
  const TensorView view = make_view(data, DType::f32, {2, 3});
  EXPECT_EQ(view.elements(), 6);
  EXPECT_TRUE(view.contiguous());
  EXPECT_FALSE(make_view(data, DType::f32, {3, 2}, {1, 3}).contiguous());
}

}  // namespace
}  // namespace zeroplan
