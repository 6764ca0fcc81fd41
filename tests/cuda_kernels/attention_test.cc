// attention and its gradient at sizes that cross tiles of queries, keys and columns, with every kind of mask.
#include <limits>

#include <gtest/gtest.h>

#include "tests/cuda_kernels/sized_case.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

struct Sizes {
  int64_t batch, heads, kv_heads, queries, keys, depth;
};

void check_both(const Sizes& s, int64_t causal, const std::vector<TensorSpec>& mask = {}) {
  SCOPED_TRACE(std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys, depth " + std::to_string(s.depth) +
               (causal ? ", causal" : ""));
  const TensorSpec q = real({s.batch, s.heads, s.queries, s.depth}), kv = real({s.batch, s.kv_heads, s.keys, s.depth});
  const TensorSpec lse = wide(real({s.batch, s.heads, s.queries}, 4, 5));
  const Attributes attributes = {{Attr::scale, 0.3}, {Attr::causal, causal}};
  std::vector<TensorSpec> forward = {q, kv, kv}, backward = {q, q, kv, kv, q, lse};
  forward.insert(forward.end(), mask.begin(), mask.end());
  backward.insert(backward.end(), mask.begin(), mask.end());
  check_on_device({"attention", OpKind::attention, forward, attributes});
  check_on_device({"attention_grad", OpKind::attention_grad, backward, attributes});
}

TEST(CudaAttention, TilesOfQueriesAndKeys) {
  for (const int64_t causal : {0, 1})
    for (const auto& [queries, keys] :
         std::vector<std::pair<int64_t, int64_t>>{{63, 65}, {64, 64}, {129, 1}, {1, 130}, {70, 200}, {200, 70}})
      check_both({1, 2, 1, queries, keys, 20}, causal);
}

TEST(CudaAttention, DepthsOfOneSliceAndOfSeveral) {
  for (const int64_t depth : {1, 5, 64, 65, 96, 128, 131, 260}) check_both({1, 1, 1, 67, 66, depth}, 1);
}

TEST(CudaAttention, GroupsOfHeads) {
  check_both({2, 6, 3, 66, 5, 8}, 1);
  check_both({3, 4, 1, 5, 66, 8}, 0);
}

TEST(CudaAttention, Masks) {
  const Sizes s = {2, 2, 1, 66, 70, 8};
  for (const Shape& shape : {Shape{2, 2, 66, 70}, {66, 70}, {2, 1, 1, 70}, {2, 66, 1}, {1}, {2, 1, 66, 70}})
    for (const int64_t causal : {0, 1}) check_both(s, causal, {real(shape)});
  const double no = -std::numeric_limits<double>::infinity();
  std::vector<double> hidden(66 * 70, 0);
  for (int64_t query = 0; query < 66; ++query)
    for (int64_t key = 0; key < 70; ++key)
      if (query == 3 || (query > 20 && key < 65) || (query + key) % 7 == 0) hidden[query * 70 + key] = no;
  check_both(s, 0, {reals({66, 70}, hidden)});
}

TEST(CudaAttention, NothingToAttend) {
  check_both({1, 1, 1, 3, 0, 4}, 0);
  check_both({1, 1, 1, 0, 3, 4}, 0);
  check_both({0, 1, 1, 2, 3, 4}, 1);
}

}  // namespace
}  // namespace zeroplan
