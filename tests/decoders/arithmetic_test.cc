// Rounding, remainders, bits, signs of integers, determinants, matrix products.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

TEST(Arithmetic, RoundingGoesToEvenAndPassesNoGradient) {
  const HostTensor x = reals({6}, {-2.5, -1.2, -0.5, 0.5, 1.5, 2.7});
  EXPECT_EQ(difference(OneNode("Round").input(x).value(), {6}, {-2, -1, 0, 0, 2, 3}), "");
  EXPECT_EQ(difference(OneNode("Ceil").input(x).value(), {6}, {-2, -1, 0, 1, 2, 3}), "");
  EXPECT_EQ(difference(OneNode("Floor").input(x).value(), {6}, {-3, -2, -1, 0, 1, 2}), "");
  EXPECT_EQ(OneNode("Floor").input(x).gradient_difference(), "all gradients are zero");
}

TEST(Arithmetic, ModHasTheSignOfTheDivisorOrOfTheDividend) {
  const HostTensor a = integers({4}, {-7, 7, -7, 7}), b = integers({4}, {3, -3, -3, 3});
  EXPECT_EQ(difference(OneNode("Mod").input(a).input(b).value(), {4}, {2, -2, -1, 1}), "");
  EXPECT_EQ(difference(OneNode("Mod").input(a).input(b).set("fmod", 1).value(), {4}, {-1, 1, -1, 1}), "");
  OneNode real = OneNode("Mod").input(reals({3}, {-7.25, 5.5, 2.25})).input(reals({1}, {2})).set("fmod", 1);
  EXPECT_EQ(difference(real.value(), {3}, {-1.25, 1.5, 0.25}), "");
  EXPECT_EQ(real.gradient_difference(), "");
}

TEST(Arithmetic, InfinitiesAreToldByTheirSign) {
  const HostTensor x = reals({4}, {INFINITY, -INFINITY, NAN, 1});
  EXPECT_EQ(difference(OneNode("IsInf").input(x).value(), {4}, {1, 1, 0, 0}), "");
  EXPECT_EQ(difference(OneNode("IsInf").input(x).set("detect_negative", 0).value(), {4}, {1, 0, 0, 0}), "");
  EXPECT_EQ(difference(OneNode("IsInf").input(x).set("detect_positive", 0).value(), {4}, {0, 1, 0, 0}), "");
  EXPECT_EQ(difference(OneNode("IsInf").input(x).set("detect_positive", 0).set("detect_negative", 0).value(), {4}, {0, 0, 0, 0}), "");
}

TEST(Arithmetic, BitsOfIntegers) {
  const HostTensor a = integers({3}, {12, 10, 255}, DType::u8), b = integers({3}, {1, 3, 4}, DType::u8);
  EXPECT_EQ(difference(OneNode("BitShift").input(a).input(b).set("direction", "LEFT").value(), {3}, {24, 80, 240}), "");
  EXPECT_EQ(difference(OneNode("BitShift").input(a).input(b).set("direction", "RIGHT").value(), {3}, {6, 1, 15}), "");
  EXPECT_EQ(difference(OneNode("BitwiseAnd").input(a).input(b).value(), {3}, {0, 2, 4}), "");
  EXPECT_EQ(difference(OneNode("BitwiseOr").input(a).input(b).value(), {3}, {13, 11, 255}), "");
  EXPECT_EQ(difference(OneNode("BitwiseXor").input(a).input(b).value(), {3}, {13, 9, 251}), "");
  EXPECT_EQ(difference(OneNode("BitwiseNot").input(a).value(), {3}, {243, 245, 0}), "");
  EXPECT_EQ(difference(OneNode("BitwiseNot").input(integers({2}, {5, -1})).value(), {2}, {-6, 0}), "");
  EXPECT_THAT(OneNode("BitShift").input(a).input(b).set("direction", "UP").refusal(), HasSubstr("'UP'"));
}

TEST(Arithmetic, IntegersAndBooleansAreTakenWhereOnnxTakesThem) {
  const HostTensor x = integers({3}, {-4, 0, 7}, DType::i32), bytes = integers({3}, {0, 3, 255}, DType::u8);
  EXPECT_EQ(difference(OneNode("Relu").input(x).value(), {3}, {0, 0, 7}), "");
  EXPECT_EQ(difference(OneNode("Sign").input(bytes).value(), {3}, {0, 1, 1}), "");
  EXPECT_EQ(difference(OneNode("Abs").input(bytes).value(), {3}, {0, 3, 255}), "");
  EXPECT_EQ(difference(OneNode("Max").input(bytes).input(integers({1}, {100}, DType::u8)).value(), {3}, {100, 100, 255}), "");
  const HostTensor p = booleans({4}, {0, 0, 1, 1}), q = booleans({4}, {0, 1, 0, 1});
  EXPECT_EQ(difference(OneNode("Xor").input(p).input(q).value(), {4}, {0, 1, 1, 0}), "");
  EXPECT_EQ(difference(OneNode("Equal").input(p).input(q).value(), {4}, {1, 0, 0, 1}), "");
}

// Product of the pivots; the matrices are well enough conditioned for it.
double eliminated(const HostTensor& matrices, int64_t first, int64_t n) {
  std::vector<double> a;
  for (int64_t i = 0; i < n * n; ++i) a.push_back(matrices.get(first + i));
  double product = 1;
  for (int64_t k = 0; k < n; ++k) {
    product *= a[k * n + k];
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = n; j-- > k;) a[i * n + j] -= a[i * n + k] / a[k * n + k] * a[k * n + j];
  }
  return product;
}

TEST(Arithmetic, DeterminantsUpToEight) {
  for (const int64_t n : {1, 2, 3, 5, 8}) {
    const HostTensor a = random_reals({2, n, n}, -1, 1, 7);
    OneNode node = OneNode("Det").input(a);
    EXPECT_EQ(difference(node.value(), {2}, {eliminated(a, 0, n), eliminated(a, n * n, n)}), "") << n;
    EXPECT_EQ(node.gradient_difference(), "") << n;
  }
  EXPECT_THAT(OneNode("Det").input(random_reals({9, 9})).refusal(), HasSubstr("at most 8x8"));
  EXPECT_THAT(OneNode("Det").input(random_reals({2, 3})).refusal(), HasSubstr("no square matrix"));
}

TEST(Arithmetic, ProductsOfIntegerMatrices) {
  const HostTensor a = integers({2, 3}, {1, 2, 3, -4, 5, 6}), b = integers({3, 2}, {1, 0, 2, 1, 0, 3});
  EXPECT_EQ(difference(OneNode("MatMul").input(a).input(b).value(), {2, 2}, {5, 11, 6, 23}), "");
  EXPECT_EQ(difference(OneNode("MatMul").input(integers({3}, {1, 2, 3})).input(b).value(), {2}, {5, 11}), "");
  EXPECT_EQ(difference(OneNode("MatMul").input(a).input(integers({3}, {1, 0, 2})).value(), {2}, {7, 8}), "");
  EXPECT_EQ(difference(OneNode("MatMul").input(integers({2}, {3, 4})).input(integers({2}, {5, 6})).value(), {}, {39}), "");
}

TEST(Arithmetic, GemmScalesBothTerms) {
  OneNode node = OneNode("Gemm").input(reals({2, 1}, {1, 2})).input(reals({3, 2}, {1, 2, 3, 4, 5, 6})).input(reals({3}, {10, 20, 30}));
  node.set("transA", 1).set("transB", 1).set("alpha", 0.5).set("beta", 2.0);
  EXPECT_EQ(difference(node.value(), {1, 3}, {22.5, 45.5, 68.5}), "");
  EXPECT_EQ(node.gradient_difference(), "");
  OneNode plain = OneNode("Gemm").input(reals({1, 2}, {1, 2})).input(reals({2, 1}, {3, 4})).set("alpha", 2.0);
  EXPECT_EQ(difference(plain.value(), {1, 1}, {22}), "");
}

}  // namespace
}  // namespace zeroplan
