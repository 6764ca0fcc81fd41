// Contributions of 16 bits are folded in float32, in rank order.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "runtime/comm/communicator.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;

// One thread per rank.
void on_ranks(int n, const std::function<void(Communicator&, Stream&)>& work) {
  auto comms = make_local_communicators(n, 20s);
  auto device = make_cpu_device(1);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      auto stream = device->new_stream(StreamKind::reduce);
      work(*comms[r], *stream);
      stream->synchronize();
    });
  }
  for (auto& t : threads) t.join();
}

// Values whose sum depends on the order.
template <typename Half>
Half addend(int rank, int64_t i, int round) {
  return Half(static_cast<float>(std::sin(static_cast<double>(i * 13 + rank * 101 + round * 7)) * std::pow(10.0, (rank + i + round) % 5)));
}

template <typename Half>
void check_fold(DType dtype, int n, int64_t shard, int contributors) {
  on_ranks(n, [&](Communicator& comm, Stream& stream) {
    std::vector<Half> full(n * shard);
    std::vector<float> accumulator(shard + 1, std::nanf(""));
    accumulator[shard] = -77;
    for (int round = 0; round < 2; ++round) {
      for (int64_t i = 0; i < n * shard; ++i) full[i] = addend<Half>(comm.rank(), i, round);
      const Fold fold = round == 0 ? Fold::from_zero : Fold::onto;
      comm.reduce_scatter(full.data(), accumulator.data(), shard, dtype, contributors, fold, stream);
      stream.synchronize();
    }
    for (int64_t i = 0; i < shard; ++i) {
      float expected = 0;
      for (int round = 0; round < 2; ++round)
        for (int r = 0; r < contributors; ++r) expected += static_cast<float>(addend<Half>(r, comm.rank() * shard + i, round));
      ASSERT_EQ(accumulator[i], expected) << "element " << i;
    }
    ASSERT_EQ(accumulator[shard], -77);
  });
}

TEST(HalfReductions, FoldInRankOrder) {
  for (const int n : {1, 2, 3, 4})
    for (const int64_t shard : {0, 1, 5, 64, 20001})
      for (const int contributors : {0, n - 1, n}) {
        check_fold<Float16>(DType::f16, n, shard, contributors);
        check_fold<BFloat16>(DType::bf16, n, shard, contributors);
      }
}

// Seven ones are lost in a sum of bfloat16 that starts at 256.
TEST(HalfReductions, LoseNothingThatFloatHolds) {
  on_ranks(8, [&](Communicator& comm, Stream& stream) {
    const std::vector<BFloat16> full(8, BFloat16(comm.rank() == 0 ? 256.0f : 1.0f));
    float sum = 0;
    comm.reduce_scatter(full.data(), &sum, 1, DType::bf16, 8, Fold::from_zero, stream);
    stream.synchronize();
    EXPECT_EQ(sum, 263);
    EXPECT_EQ(sum / 8, 32.875f);
  });
}

TEST(HalfReductions, AreNoSumsOfAllRanks) {
  on_ranks(2, [&](Communicator& comm, Stream& stream) {
    BFloat16 x[8];
    EXPECT_THROW(comm.all_reduce(x, 1, DType::bf16, stream), Error);
    EXPECT_THROW(comm.reduce_scatter(x, x, 1, DType::i16, 2, Fold::onto, stream), Error);
  });
}

}  // namespace
}  // namespace zeroplan
