#include <limits>

#include "tests/op_cases/case_lists.h"

namespace zeroplan {

namespace {

Attributes scaled(double scale, int64_t causal) { return {{Attr::scale, scale}, {Attr::causal, causal}}; }

// [4, 4]: the second query sees nothing, the others part of the keys.
TensorSpec holes() {
  const double no = -std::numeric_limits<double>::infinity();
  return no_gradient(reals({4, 4}, {0, no, 0.5, 0, no, no, no, no, 0, 0, 0, no, no, 0.25, 0, 0}));
}

}  // namespace

CaseList attention_cases() {
  const TensorSpec q = real({2, 4, 4, 3}), kv = real({2, 2, 4, 3}), lse = wide(real({2, 4, 4}, 2, 3));
  const TensorSpec mask = no_gradient(real({2, 1, 1, 4}));
  const TensorSpec long_q = real({1, 2, 70, 16}), long_kv = real({1, 2, 131, 16}), long_lse = wide(real({1, 2, 70}, 4, 5));
  CaseList cases = {
      {"attention", OpKind::attention, {real({2, 2, 3, 4}), real({2, 2, 5, 4}), real({2, 2, 5, 4})}, scaled(0.5, 0), true},
      {"attention_grouped_causal", OpKind::attention, {q, kv, kv}, scaled(0.7, 1), true},
      {"attention_causal_longer_keys",
       OpKind::attention,
       {real({1, 2, 3, 4}), real({1, 2, 5, 4}), real({1, 2, 5, 4})},
       scaled(0.5, 1),
       true},
      {"attention_causal_fewer_keys",
       OpKind::attention,
       {real({1, 2, 5, 4}), real({1, 2, 3, 4}), real({1, 2, 3, 4})},
       scaled(0.5, 1),
       true},
      {"attention_mask", OpKind::attention, {q, kv, kv, mask}, scaled(0.7, 0), true},
      {"attention_mask_and_causal", OpKind::attention, {q, kv, kv, no_gradient(real({4, 1}))}, scaled(0.7, 1), true},
      {"attention_mask_gradient", OpKind::attention, {q, kv, kv, real({4, 1, 4})}, scaled(0.7, 0), true},
      {"attention_causal_mask_gradient", OpKind::attention, {q, kv, kv, real({2, 1, 4, 4})}, scaled(0.7, 1), true},
      {"attention_hidden_query", OpKind::attention, {q, kv, kv, holes()}, scaled(0.7, 0), true},
      {"attention_absent_mask", OpKind::attention, {q, kv, kv, absent()}, scaled(0.7, 1), true},
      {"attention_one_key", OpKind::attention, {real({1, 1, 2, 3}), real({1, 1, 1, 3}), real({1, 1, 1, 3})}, scaled(1, 0)},
      {"attention_long", OpKind::attention, {long_q, long_kv, long_kv}, scaled(0.25, 0)},
      {"attention_long_causal", OpKind::attention, {long_q, long_kv, long_kv}, scaled(0.25, 1)},
      {"attention_grad", OpKind::attention_grad, {q, q, kv, kv, q, lse}, scaled(0.7, 0)},
      {"attention_grad_causal", OpKind::attention_grad, {q, q, kv, kv, q, lse}, scaled(0.7, 1)},
      {"attention_grad_mask", OpKind::attention_grad, {q, q, kv, kv, q, lse, mask}, scaled(0.7, 1)},
      {"attention_grad_hidden_query", OpKind::attention_grad, {q, q, kv, kv, q, lse, holes()}, scaled(0.7, 0)},
      {"attention_grad_long", OpKind::attention_grad, {long_q, long_q, long_kv, long_kv, long_q, long_lse}, scaled(0.25, 0)},
      {"attention_grad_long_causal", OpKind::attention_grad, {long_q, long_q, long_kv, long_kv, long_q, long_lse}, scaled(0.25, 1)},
  };
  return cases;
}

}  // namespace zeroplan
