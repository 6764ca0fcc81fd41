// What every communicator must do, at 1, 2, 3 and 4 ranks.
#include "runtime/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "comm_kind.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::CommKind;
using test::expect_no_errors;
using test::RankContext;
using ::testing::HasSubstr;

void random_delay(std::mt19937& rng) {
  if (rng() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 500));
}

class CommTest : public ::testing::TestWithParam<std::tuple<CommKind, int>> {
 protected:
  const CommKind& kind() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  std::vector<std::string> on_ranks(int n, std::chrono::milliseconds deadline, const std::function<void(RankContext)>& work) const {
    return test::on_ranks(kind(), n, deadline, work);
  }
  template <typename T>
  void check_fold(int64_t shard, int contributors) const;
  template <typename T>
  void check_fold_from_zero(int64_t shard, int contributors) const;
};
INSTANTIATE_TEST_SUITE_P(All, CommTest, ::testing::Combine(::testing::ValuesIn(test::comm_kinds()), ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) { return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param)); });

TEST_P(CommTest, KnowsRankAndSize) {
  const test::Devices devices = kind().devices(ranks());
  auto comms = kind().make(devices, 1s);
  ASSERT_EQ(static_cast<int>(comms.size()), ranks());
  for (int r = 0; r < ranks(); ++r) EXPECT_EQ(std::pair(comms[r]->rank(), comms[r]->size()), std::pair(r, ranks()));
}

TEST_P(CommTest, AllGatherInPlaceAndApart) {
  const int n = ranks();
  const auto byte = [](int rank, int64_t i) { return static_cast<unsigned char>(i * 31 + rank * 7); };
  for (int64_t bytes : {0, 1, 7, 64, 100003}) {
    for (bool in_place : {false, true}) {
      expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
        std::vector<unsigned char> own(bytes), whole(n * bytes + 1, 0xEE);
        for (int64_t i = 0; i < bytes; ++i) own[i] = byte(c.rank, i);
        if (in_place) std::copy(own.begin(), own.end(), whole.begin() + c.rank * bytes);
        Buffer<unsigned char> shard(c, own), full(c, whole);
        c.comm.all_gather(in_place ? full.data() + c.rank * bytes : shard.data(), full.data(), bytes, c.stream);
        const auto result = full.get();
        for (int r = 0; r < n; ++r)
          for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(result[r * bytes + i], byte(r, i));
        ASSERT_EQ(result[n * bytes], 0xEE);
      }));
    }
  }
}

// Values whose sum depends on the order, so that a wrong order shows.
template <typename T>
T ordered_value(int rank, int64_t i, int round) {
  return static_cast<T>(std::sin(static_cast<double>(i * 13 + rank * 101 + round * 7)) * std::pow(10.0, (rank + i + round) % 7));
}

template <typename T>
std::vector<T> ordered_values(int rank, int64_t count, int round) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = ordered_value<T>(rank, i, round);
  return values;
}

template <typename T>
constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;

template <typename T>
void CommTest::check_fold(int64_t shard, int contributors) const {
  const int n = ranks();
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    std::vector<T> start(shard + 1, T(0));
    start[shard] = T(-77);
    Buffer<T> full(c, std::vector<T>(n * shard)), accumulator(c, start);
    for (int round = 0; round < 2; ++round) {
      full.set(ordered_values<T>(c.rank, n * shard, round));
      c.comm.reduce_scatter(full.data(), accumulator.data(), shard, kType<T>, contributors, Fold::onto, c.stream);
    }
    const std::vector<T> result = accumulator.get();
    for (int64_t i = 0; i < shard; ++i) {
      volatile T expected = 0;  // volatile: one rounding per addition, whatever the compiler does here
      double largest = 0;
      for (int round = 0; round < 2; ++round)
        for (int r = 0; r < contributors; ++r) {
          const T value = ordered_value<T>(r, c.rank * shard + i, round);
          expected = expected + value;
          largest = std::max(largest, std::abs(static_cast<double>(value)));
        }
      ASSERT_NEAR(result[i], expected, kind().ordered ? 0 : 1e-6 * largest) << "element " << i;
    }
    ASSERT_EQ(result[shard], T(-77));
  }));
}

TEST_P(CommTest, ReduceScatterFoldsInRankOrder) {
  for (int64_t shard : {0, 1, 5, 64, 4097, 20001}) {
    check_fold<float>(shard, ranks());
    check_fold<double>(shard, ranks());
  }
}

TEST_P(CommTest, ReduceScatterTakesTheFirstContributorsOnly) {
  for (int contributors = 0; contributors <= ranks(); ++contributors) check_fold<float>(130, contributors);
}

// The bits of a fold onto zeros, whatever lay there: -0 contributes as it would to +0, and without contributors zeros remain.
template <typename T>
void CommTest::check_fold_from_zero(int64_t shard, int contributors) const {
  const int n = ranks();
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    std::vector<T> nans(shard + 1, std::numeric_limits<T>::quiet_NaN()), nulls(shard + 1, T(0)), values(n * shard);
    nans[shard] = nulls[shard] = T(-77);
    for (int64_t i = 0; i < n * shard; ++i) values[i] = i % 3 == 0 ? T(-0.0) : ordered_value<T>(c.rank, i, 0);
    Buffer<T> full(c, values), fresh(c, nans), zeros(c, nulls);
    c.comm.reduce_scatter(full.data(), fresh.data(), shard, kType<T>, contributors, Fold::from_zero, c.stream);
    c.comm.reduce_scatter(full.data(), zeros.data(), shard, kType<T>, contributors, Fold::onto, c.stream);
    ASSERT_EQ(std::memcmp(fresh.get().data(), zeros.get().data(), (shard + 1) * sizeof(T)), 0);
  }));
}

TEST_P(CommTest, ReduceScatterFromZeroGivesTheBitsOfAFoldOntoZeros) {
  for (int64_t shard : {0, 1, 64, 20001})
    for (int contributors : {0, 1, ranks()}) {
      check_fold_from_zero<float>(shard, contributors);
      check_fold_from_zero<double>(shard, contributors);
    }
}

TEST_P(CommTest, AllReduceSumsInRankOrderEverywhere) {
  const int n = ranks();
  for (int64_t count : {1, 2, 3, 10, 68, 1001}) {
    expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
      std::vector<int64_t> whole(count);
      for (int64_t i = 0; i < count; ++i) whole[i] = (int64_t{1} << 53) + c.rank + i;
      Buffer<double> data(c, ordered_values<double>(c.rank, count, 0));
      Buffer<int64_t> ints(c, whole);
      c.comm.all_reduce(data.data(), count, DType::f64, c.stream);
      c.comm.all_reduce(ints.data(), count, DType::i64, c.stream);
      const auto sums = data.get();
      const auto exact = ints.get();
      for (int64_t i = 0; i < count; ++i) {
        volatile double expected = ordered_value<double>(0, i, 0);
        for (int r = 1; r < n; ++r) expected = expected + ordered_value<double>(r, i, 0);
        ASSERT_EQ(sums[i], expected);
        ASSERT_EQ(exact[i], n * (int64_t{1} << 53) + n * (n - 1) / 2 + n * i);
      }
    }));
  }
}

TEST_P(CommTest, BroadcastFromEveryRoot) {
  const int n = ranks();
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    for (int root = 0; root < n; ++root) {
      Buffer<int> data(c, std::vector<int>(33, c.rank == root ? root + 100 : -1));
      c.comm.broadcast(data.data(), 33 * sizeof(int), root, c.stream);
      for (int v : data.get()) ASSERT_EQ(v, root + 100);
    }
  }));
}

TEST_P(CommTest, NobodyPassesABarrierEarly) {
  const int n = ranks();
  std::atomic<int> arrived{0};
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    for (int k = 1; k <= 20; ++k) {
      if (c.rank == k % n) std::this_thread::sleep_for(1ms);
      ++arrived;
      c.comm.barrier(c.stream);
      c.stream.synchronize();
      ASSERT_GE(arrived.load(), k * n);
    }
  }));
}

TEST_P(CommTest, ManyMixedCallsWithRandomDelays) {
  const int n = ranks();
  expect_no_errors(on_ranks(n, 60s, [&](RankContext c) {
    std::mt19937 rng(c.rank + 1), shared(5);
    Buffer<float> shard(c, std::vector<float>(97)), full(c, std::vector<float>(97 * n)), accumulator(c, std::vector<float>(97, 0.f));
    for (int k = 0; k < kind().calls / 16; ++k) {
      random_delay(rng);
      const int64_t count = 1 + shared() % 97;
      shard.set(std::vector<float>(count, static_cast<float>(c.rank + k)));
      c.comm.all_gather(shard.data(), full.data(), count * 4, c.stream);
      c.comm.reduce_scatter(full.data(), accumulator.data(), count, DType::f32, n, Fold::onto, c.stream);
      const auto result = full.get();  // the source may be changed from here on
      for (int r = 0; r < n; ++r) ASSERT_EQ(result[r * count + count - 1], static_cast<float>(r + k));
    }
  }));
}

TEST_P(CommTest, ManyCallsInFlight) {
  const int n = ranks();
  expect_no_errors(on_ranks(n, 60s, [&](RankContext c) {
    Buffer<int64_t> data(c, std::vector<int64_t>(kind().calls, 1));
    for (int i = 0; i < kind().calls; ++i) c.comm.all_reduce(data.data() + i, 1, DType::i64, c.stream);
    for (int64_t d : data.get()) ASSERT_EQ(d, n);
  }));
}

TEST_P(CommTest, AMismatchEndsAllRanksNamingBoth) {
  const int n = ranks();
  if (n == 1) GTEST_SKIP() << "one rank cannot disagree with itself";
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    Buffer<char> buffer(c, std::vector<char>(4096));
    c.comm.barrier(c.stream);
    c.comm.all_gather(buffer.data(), buffer.data() + 512, c.rank == n - 1 ? 65 : 64, c.stream);
  });
  for (const auto& e : errors) {
    EXPECT_THAT(e, HasSubstr("rank 0 called all_gather of shards of 64 bytes"));
    EXPECT_THAT(e, HasSubstr("rank " + std::to_string(n - 1) + " called all_gather of shards of 65 bytes"));
    EXPECT_THAT(e, HasSubstr("collective 1"));
  }
}

TEST_P(CommTest, DifferentOperationsAreAMismatch) {
  const int n = ranks();
  if (n == 1) GTEST_SKIP() << "one rank cannot disagree with itself";
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    Buffer<double> a(c, std::vector<double>(64)), b(c, std::vector<double>(64));
    if (c.rank == 1)
      c.comm.reduce_scatter(a.data(), b.data(), 4, DType::f64, n, Fold::onto, c.stream);
    else
      c.comm.all_reduce(a.data(), 4, DType::f64, c.stream);
    c.stream.synchronize();
  });
  for (const auto& e : errors) {
    EXPECT_THAT(e, HasSubstr("rank 0 called all_reduce of 4 float64 elements"));
    EXPECT_THAT(e, HasSubstr("rank 1 called reduce_scatter"));
  }
}

TEST_P(CommTest, AbortWakesEverybodyAndTheFirstReasonWins) {
  const int n = ranks();
  if (n == 1) GTEST_SKIP() << "nobody to wake";
  auto errors = on_ranks(n, 60s, [&](RankContext c) {
    if (c.rank == 0) {
      std::this_thread::sleep_for(20ms);
      c.comm.abort("the first reason");
      c.comm.abort("another reason");
    }
    c.comm.barrier(c.stream);
    c.stream.synchronize();
  });
  for (const auto& e : errors) EXPECT_EQ(e, "the first reason");
}

TEST_P(CommTest, AMissingPeerIsNamedAfterTheDeadline) {
  const int n = ranks();
  if (n == 1) GTEST_SKIP() << "nobody to miss";
  auto errors = on_ranks(n, 1000ms, [&](RankContext c) {
    Buffer<double> x(c, {1});
    if (c.rank == 1) return;
    c.comm.all_reduce(x.data(), 1, DType::f64, c.stream);
    c.stream.synchronize();
  });
  for (int r = 0; r < n; ++r) {
    if (r == 1) continue;
    EXPECT_THAT(errors[r], HasSubstr("rank 1 did not come"));
    EXPECT_THAT(errors[r], HasSubstr("all_reduce of 1 float64 elements"));
    EXPECT_THAT(errors[r], HasSubstr("1000 ms"));
  }
}

TEST_P(CommTest, UnsupportedRequestsAreRefused) {
  const int n = ranks();
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    int32_t x[8] = {};
    EXPECT_THROW(c.comm.all_reduce(x, 1, DType::i32, c.stream), Error);
    EXPECT_THROW(c.comm.reduce_scatter(x, x, 1, DType::f32, n + 1, Fold::onto, c.stream), Error);
    EXPECT_THROW(c.comm.broadcast(x, 1, n, c.stream), Error);
  });
  expect_no_errors(errors);
  EXPECT_THROW(kind().make({}, 1s), Error);
}

}  // namespace
}  // namespace zeroplan
