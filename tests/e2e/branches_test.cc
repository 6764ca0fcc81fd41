// Branches that data chooses: both are computed, one counts.
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

// Where the sum of a sample is zero, the branch that divides by it is not taken; its slopes are infinite there, as is that of the root at
// 0.
constexpr const char* kGuarded = R"(<ir_version: 8, opset_import: ["" : 13]>
case (float[N,2] x) => (float loss) <float[2] w = {2, 3}> {
  zero = Constant <value = float {0.0}> ()
  sum = ReduceSum <keepdims = 0> (x)
  h = Mul (x, w)
  c = Greater (sum, zero)
  y = If (c) <then_branch = a () => (float[N,2] ty) <float[2] u = {0, 4}> {
      quotient = Div (h, sum)
      root = Sqrt (u)
      ty = Add (quotient, root)
    }, else_branch = b () => (float[N,2] ey) {
      ey = Identity (h)
    }>
  square = Mul (y, y)
  loss = ReduceMean <keepdims = 0> (square)
})";

TEST(Branches, NoGradientComesFromTheOneThatIsNotTaken) {
  const TinyCase tiny(TinyModel().input("x", DType::f32, {"N", 2}), {{"x", floats({1, 2}, {1, -1})}});
  save_text(tiny.model(), kGuarded);
  for (const CompileOptions& options : everywhere(sgd_compile(1, 1, 3, 1), {1})) {
    const Weights gradient = gradients(tiny, options);
    EXPECT_EQ(values_of(gradient.at("w")), (std::vector<double>{2, 3})) << describe(options);  // y · x, y = x · w
    EXPECT_EQ(values_of(gradient.at("u")), (std::vector<double>{0, 0})) << describe(options);
  }
}

// A sum of 2: the branch with the quotient counts.
TEST(Branches, GradientsOfTheTakenOneAreItsOwn) {
  const TinyCase tiny(TinyModel().input("x", DType::f32, {"N", 2}), {{"x", floats({1, 2}, {4, -2})}});
  std::string text = kGuarded;
  text.replace(text.find("{0, 4}"), 6, "{1, 4}");
  save_text(tiny.model(), text);
  // y = x · w / 2 + sqrt(u) = (5, -1); the loss has the slope y.
  const Weights gradient = gradients(tiny, sgd_compile(1, 1, 3, 1));
  EXPECT_EQ(values_of(gradient.at("w")), (std::vector<double>{10, 1}));
  EXPECT_EQ(values_of(gradient.at("u")), (std::vector<double>{2.5, -0.25}));
}

}  // namespace
}  // namespace zeroplan
