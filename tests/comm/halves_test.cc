// Contributions of 16 bits are folded in float32, in rank order.
#include <gtest/gtest.h>

#include <cmath>

#include "comm_kind.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::CommKind;
using test::RankContext;

// Values whose sum depends on the order.
template <typename Half>
Half addend(int rank, int64_t i, int round) {
  return Half(static_cast<float>(std::sin(static_cast<double>(i * 13 + rank * 101 + round * 7)) * std::pow(10.0, (rank + i + round) % 5)));
}

template <typename Half>
void check_fold(const CommKind& kind, DType dtype, int n, int64_t shard, int contributors) {
  test::expect_no_errors(test::on_ranks(kind, n, 20s, [&](RankContext c) {
    std::vector<Half> values(n * shard);
    std::vector<float> start(shard + 1, std::nanf(""));
    start[shard] = -77;
    Buffer<Half> full(c, values);
    Buffer<float> accumulator(c, start);
    for (int round = 0; round < 2; ++round) {
      for (int64_t i = 0; i < n * shard; ++i) values[i] = addend<Half>(c.rank, i, round);
      full.set(values);
      const Fold fold = round == 0 ? Fold::from_zero : Fold::onto;
      c.comm.reduce_scatter(full.data(), accumulator.data(), shard, dtype, contributors, fold, c.stream);
    }
    const std::vector<float> result = accumulator.get();
    for (int64_t i = 0; i < shard; ++i) {
      float expected = 0;
      for (int round = 0; round < 2; ++round)
        for (int r = 0; r < contributors; ++r) expected += static_cast<float>(addend<Half>(r, c.rank * shard + i, round));
      ASSERT_EQ(result[i], expected) << "element " << i;
    }
    ASSERT_EQ(result[shard], -77);
  }));
}

class HalfReductions : public ::testing::TestWithParam<CommKind> {};
INSTANTIATE_TEST_SUITE_P(All, HalfReductions, ::testing::ValuesIn(test::comm_kinds()), [](const auto& info) { return info.param.name; });

TEST_P(HalfReductions, FoldInRankOrder) {
  for (const int n : {1, 2, 3, 4})
    for (const int64_t shard : {0, 1, 5, 64, 20001})
      for (const int contributors : {0, n - 1, n}) {
        check_fold<Float16>(GetParam(), DType::f16, n, shard, contributors);
        check_fold<BFloat16>(GetParam(), DType::bf16, n, shard, contributors);
      }
}

// Seven ones are lost in a sum of bfloat16 that starts at 256.
TEST_P(HalfReductions, LoseNothingThatFloatHolds) {
  test::expect_no_errors(test::on_ranks(GetParam(), 8, 20s, [&](RankContext c) {
    Buffer<BFloat16> full(c, std::vector<BFloat16>(8, BFloat16(c.rank == 0 ? 256.0f : 1.0f)));
    Buffer<float> sum(c, {0});
    c.comm.reduce_scatter(full.data(), sum.data(), 1, DType::bf16, 8, Fold::from_zero, c.stream);
    EXPECT_EQ(sum.get()[0], 263);
    EXPECT_EQ(sum.get()[0] / 8, 32.875f);
  }));
}

TEST_P(HalfReductions, AreNoSumsOfAllRanks) {
  test::expect_no_errors(test::on_ranks(GetParam(), 2, 20s, [&](RankContext c) {
    BFloat16 x[8];
    EXPECT_THROW(c.comm.all_reduce(x, 1, DType::bf16, c.stream), Error);
    EXPECT_THROW(c.comm.reduce_scatter(x, x, 1, DType::i16, 2, Fold::onto, c.stream), Error);
  }));
}

}  // namespace
}  // namespace zeroplan
