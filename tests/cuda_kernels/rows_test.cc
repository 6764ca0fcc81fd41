// Kernels over rows at sizes that cross their packs, warps, blocks and chunks: softmax, norms, cross entropy.
#include <limits>

#include <gtest/gtest.h>

#include "tests/cuda_kernels/sized_case.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

// Rows and columns: one row, odd widths, whole packs, more than a block's threads take at once, many rows, none.
const Shape kShapes[] = {{1, 1}, {3, 31}, {2, 1000}, {1, 4096}, {2, 5003}, {300, 72}, {0, 8}};

Attributes epsilon() { return {{Attr::epsilon, 1e-5}}; }

TEST(CudaRows, Softmax) {
  for (const Shape& shape : kShapes) {
    check_on_device({"softmax", OpKind::softmax, {real(shape, -3, 3)}});
    check_on_device({"softmax_grad", OpKind::softmax_grad, {real(shape), real(shape, 0, 1)}});
  }
  check_on_device({"many_rows", OpKind::softmax, {real({66001, 2}, -3, 3)}});
  check_on_device({"large", OpKind::softmax, {real({5, 700}, -2000, 2000)}});
}

// A few values among -∞, and what an all-hidden row gives.
TEST(CudaRows, SoftmaxOfMaskedRows) {
  const double no = -std::numeric_limits<double>::infinity();
  std::vector<double> values(3 * 900, no);
  values[899] = 2, values[900 + 5] = -1, values[900 + 450] = 1;
  check_on_device({"masked", OpKind::softmax, {reals({3, 900}, values)}});
  check_on_device(
      {"masked", OpKind::cross_entropy, {reals({3, 900}, values), listed({3}, {899, 5, -100})}, {{Attr::ignore_index, int64_t{-100}}}});
}

TEST(CudaRows, Norms) {
  for (const Shape& shape : kShapes) {
    const TensorSpec x = real(shape, -2, 3), gamma = real({shape[1]}, 0.5, 2), beta = real({shape[1]});
    check_on_device({"layer_norm", OpKind::layer_norm, {x, gamma, beta}, epsilon()});
    check_on_device({"rms_norm", OpKind::rms_norm, {x, gamma}, epsilon()});
  }
  // A mean far larger than what is around it.
  check_on_device({"offset", OpKind::layer_norm, {real({4, 3000}, 100, 101), real({3000}), real({3000})}, epsilon()});
}

TEST(CudaRows, NormGradients) {
  for (const Shape& shape : kShapes) {
    const TensorSpec x = real(shape), gamma = real({shape[1]}, 0.5, 2), row = wide(real({shape[0], 1})),
                     positive = wide(real({shape[0], 1}, 0.5, 2));
    check_on_device({"layer_norm_grad", OpKind::layer_norm_grad, {x, x, gamma, row, positive}});
    check_on_device({"rms_norm_grad", OpKind::rms_norm_grad, {x, x, gamma, positive}});
  }
  // More columns than the shared memory has sums for, and chunks of many rows. Small numbers: the columns' sums are compared as they are.
  for (const Shape& shape : {Shape{9, 7001}, Shape{4001, 3}}) {
    const TensorSpec x = real(shape, -0.01, 0.01), gamma = real({shape[1]}, 0.5, 2), row = wide(real({shape[0], 1}, -0.01, 0.01)),
                     positive = wide(real({shape[0], 1}, 0.5, 2));
    check_on_device({"layer_norm_grad", OpKind::layer_norm_grad, {x, x, gamma, row, positive}});
    check_on_device({"rms_norm_grad", OpKind::rms_norm_grad, {x, x, gamma, positive}});
  }
}

TEST(CudaRows, CrossEntropy) {
  const Attributes ignore = {{Attr::ignore_index, int64_t{2}}};
  for (const Shape& shape : kShapes) {
    for (const DType dtype : {DType::i32, DType::i64}) {
      const TensorSpec logits = real(shape, -3, 3), labels = ints({shape[0]}, 0, shape[1], dtype);
      check_on_device({"cross_entropy", OpKind::cross_entropy, {logits, labels}, ignore});
      check_on_device({"cross_entropy_grad",
                       OpKind::cross_entropy_grad,
                       {wide(reals({}, {0.75})), logits, labels, wide(real({shape[0]}, 2, 3))},
                       ignore});
    }
  }
  check_on_device({"many_rows", OpKind::cross_entropy, {real({3001, 7}, -0.01, 0.01), ints({3001}, 0, 7)}, ignore});
}

TEST(CudaRows, ALabelOutsideTheClassesIsFound) {
  const TensorSpec logits = real({4, 5}), lse = wide(real({4}));
  const OpCase cases[] = {
      {"loss", OpKind::cross_entropy, {logits, listed({4}, {0, 1, 2, 3}, DType::i64)}},
      {"gradient", OpKind::cross_entropy_grad, {wide(reals({}, {1})), logits, listed({4}, {0, 1, 2, 3}, DType::i64), lse}}};
  for (const OpCase& op_case : cases)
    for (const int64_t wrong : {int64_t{-1}, int64_t{5}, int64_t{1} << 40}) {
      CaseGraph built = build_case(op_case, DType::f32, 1);
      const int labels = op_case.op == OpKind::cross_entropy ? 1 : 2;
      built.values[built.node.inputs[labels]].set_int(2, wrong);
      try {
        device_outputs(built);
        ADD_FAILURE() << wrong << " passed";
      } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()).find("label " + std::to_string(wrong) + " of row 2 is outside the 5 classes"),
                  std::string::npos)
            << error.what();
      }
    }
}

}  // namespace
}  // namespace zeroplan
