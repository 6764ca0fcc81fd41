// Operators that work row by row: softmax, norms, cross entropy.
#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

Attributes epsilon(double value) { return {{Attr::epsilon, value}}; }
Attributes ignore(int64_t label) { return {{Attr::ignore_index, label}}; }

}  // namespace

CaseList row_cases() {
  const TensorSpec x = real({2, 3, 5}, -2, 2), gamma = real({5}, 0.5, 2), row = wide(real({2, 3, 1})),
                   positive = wide(real({2, 3, 1}, 0.5, 2));
  const TensorSpec labels = listed({6}, {0, 4, 2, 2, 1, 3}), some = listed({6}, {-100, 4, 2, -100, 1, 3}, DType::i32);
  const TensorSpec seed = wide(reals({}, {0.75})), logits = real({6, 5}, -3, 3), lse = wide(real({6}, 2, 3));
  return {
      {"softmax", OpKind::softmax, {x}, {}, true},
      {"softmax_large_values", OpKind::softmax, {real({3, 33}, -200, 200)}},
      {"softmax_one", OpKind::softmax, {real({4, 1})}},
      {"softmax_long", OpKind::softmax, {real({5, 1029}, -5, 5)}},
      {"softmax_grad", OpKind::softmax_grad, {x, real({2, 3, 5}, 0, 1)}},
      {"softmax_grad_long", OpKind::softmax_grad, {real({5, 1029}), real({5, 1029}, 0, 0.002)}},
      {"layer_norm", OpKind::layer_norm, {x, gamma, real({5})}, epsilon(1e-5), true},
      {"layer_norm_no_beta", OpKind::layer_norm, {x, gamma}, epsilon(1e-3), true},
      {"layer_norm_absent_beta", OpKind::layer_norm, {x, gamma, absent()}, epsilon(1e-5), true},
      {"layer_norm_offset", OpKind::layer_norm, {real({7, 193}, 10, 11), real({193}), real({193})}, epsilon(1e-5)},
      {"layer_norm_grad", OpKind::layer_norm_grad, {x, real({2, 3, 5}), gamma, row, positive}},
      {"layer_norm_grad_many",
       OpKind::layer_norm_grad,
       {real({37, 65}), real({37, 65}), real({65}), wide(real({37, 1})), wide(real({37, 1}, 0.5, 2))}},
      {"rms_norm", OpKind::rms_norm, {x, gamma}, epsilon(1e-5), true},
      {"rms_norm_long", OpKind::rms_norm, {real({7, 193}), real({193})}, epsilon(1e-6)},
      {"rms_norm_grad", OpKind::rms_norm_grad, {x, real({2, 3, 5}), gamma, positive}},
      {"rms_norm_grad_many", OpKind::rms_norm_grad, {real({37, 65}), real({37, 65}), real({65}), wide(real({37, 1}, 0.5, 2))}},
      {"cross_entropy", OpKind::cross_entropy, {logits, labels}, {}, true},
      {"cross_entropy_ignored", OpKind::cross_entropy, {logits, some}, ignore(-100), true},
      {"cross_entropy_large_values", OpKind::cross_entropy, {real({6, 301}, -300, 300), ints({6}, 0, 301)}, ignore(7)},
      {"cross_entropy_grad", OpKind::cross_entropy_grad, {seed, logits, labels, lse}},
      {"cross_entropy_grad_ignored", OpKind::cross_entropy_grad, {seed, logits, some, lse}, ignore(-100)},
      {"cross_entropy_grad_wide", OpKind::cross_entropy_grad, {seed, real({6, 301}), ints({6}, 0, 301), wide(real({6}, 5, 6))}, ignore(3)},
  };
}

}  // namespace zeroplan
