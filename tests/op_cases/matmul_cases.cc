#include "tests/op_cases/case_lists.h"

namespace zeroplan {

CaseList matmul_cases() {
  return {
      {"matmul", OpKind::matmul, {real({3, 4}), real({4, 5})}, {}, true},
      {"matmul_rows_times_weight", OpKind::matmul, {real({2, 3, 4}), real({4, 5})}, {}, true},
      {"matmul_batched", OpKind::matmul, {real({2, 3, 4}), real({2, 4, 5})}, {}, true},
      {"matmul_broadcast_batch", OpKind::matmul, {real({2, 1, 3, 4}), real({3, 4, 2})}, {}, true},
      {"matmul_weight_times_batch", OpKind::matmul, {real({3, 4}), real({2, 4, 5})}, {}, true},
      {"matmul_vector_matrix", OpKind::matmul, {real({4}), real({4, 5})}, {}, true},
      {"matmul_matrix_vector", OpKind::matmul, {real({3, 4}), real({4})}, {}, true},
      {"matmul_batch_vector", OpKind::matmul, {real({2, 3, 4}), real({4})}, {}, true},
      {"matmul_vector_batch", OpKind::matmul, {real({4}), real({2, 4, 3})}, {}, true},
      {"matmul_dot", OpKind::matmul, {real({4}), real({4})}, {}, true},
      {"matmul_one", OpKind::matmul, {real({1, 1}), real({1, 1})}, {}, true},
      {"matmul_column", OpKind::matmul, {real({5, 1}), real({1, 3})}, {}, true},
      {"matmul_bias", OpKind::matmul, {real({2, 3, 4}), real({4, 5}), real({5})}, {}, true},
      {"matmul_added", OpKind::matmul, {real({3, 4}), real({4, 5}), absent(), real({3, 5})}, {}, true},
      {"matmul_bias_and_added", OpKind::matmul, {real({2, 1, 3, 4}), real({3, 4, 2}), real({2}), real({2, 3, 3, 2})}, {}, true},
      {"matmul_row_bias_and_added", OpKind::matmul, {real({4}), real({2, 4, 5}), real({5}), real({2, 5})}, {}, true},
      {"matmul_large_bias_and_added", OpKind::matmul, {real({67, 45}), real({45, 70}), real({70}), real({67, 70})}},
      {"matmul_large", OpKind::matmul, {real({67, 45}), real({45, 70})}},
      {"matmul_large_batch", OpKind::matmul, {real({3, 2, 17, 33}), real({3, 2, 33, 19})}},
  };
}

}  // namespace zeroplan
