// What every communicator must do, at 1, 2, 3 and 4 ranks. The parameter is the number of ranks.
#include "runtime/comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct RankContext {
  int rank;
  Communicator& comm;
  Stream& stream;
};

// One thread per rank; returns what each rank's work threw, "" where nothing.
std::vector<std::string> on_ranks(int n, std::chrono::milliseconds deadline, const std::function<void(RankContext)>& work) {
  auto comms = make_local_communicators(n, deadline);
  std::vector<std::string> errors(n);
  std::vector<std::thread> threads;
  auto device = make_cpu_device(1);
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      auto stream = device->new_stream(r % 2 == 0 ? StreamKind::gather : StreamKind::compute);
      try {
        work({r, *comms[r], *stream});
        stream->synchronize();
      } catch (const std::exception& e) {
        errors[r] = e.what();
      }
    });
  }
  for (auto& t : threads) t.join();
  return errors;
}

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const auto& e : errors) EXPECT_EQ(e, "");
}

void random_delay(std::mt19937& rng) {
  if (rng() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 500));
}

class CommTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Local, CommTest, ::testing::Values(1, 2, 3, 4));

TEST_P(CommTest, KnowsRankAndSize) {
  auto comms = make_local_communicators(GetParam(), 1s);
  ASSERT_EQ(static_cast<int>(comms.size()), GetParam());
  for (int r = 0; r < GetParam(); ++r) {
    EXPECT_EQ(comms[r]->rank(), r);
    EXPECT_EQ(comms[r]->size(), GetParam());
  }
}

TEST_P(CommTest, AllGatherInPlaceAndApart) {
  const int n = GetParam();
  for (int64_t bytes : {0, 1, 7, 64, 100003}) {
    for (bool in_place : {false, true}) {
      expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
        std::vector<unsigned char> shard(bytes), full(n * bytes + 1, 0xEE);
        for (int64_t i = 0; i < bytes; ++i) shard[i] = static_cast<unsigned char>(i * 31 + c.rank * 7);
        unsigned char* own = in_place ? full.data() + c.rank * bytes : shard.data();
        if (in_place) std::copy(shard.begin(), shard.end(), own);
        c.comm.all_gather(own, full.data(), bytes, c.stream);
        c.stream.synchronize();
        for (int r = 0; r < n; ++r)
          for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(full[r * bytes + i], static_cast<unsigned char>(i * 31 + r * 7));
        ASSERT_EQ(full[n * bytes], 0xEE);
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
void check_fold(int n, int64_t shard, int contributors) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    std::vector<T> full(n * shard), accumulator(shard + 1, T(0));
    accumulator[shard] = T(-77);
    for (int round = 0; round < 2; ++round) {
      for (int64_t i = 0; i < n * shard; ++i) full[i] = ordered_value<T>(c.rank, i, round);
      c.comm.reduce_scatter(full.data(), accumulator.data(), shard, dtype, contributors, Fold::onto, c.stream);
      c.stream.synchronize();
    }
    for (int64_t i = 0; i < shard; ++i) {
      volatile T expected = 0;  // volatile: one rounding per addition, whatever the compiler does here
      for (int round = 0; round < 2; ++round)
        for (int r = 0; r < contributors; ++r) expected = expected + ordered_value<T>(r, c.rank * shard + i, round);
      ASSERT_EQ(accumulator[i], expected) << "element " << i;
    }
    ASSERT_EQ(accumulator[shard], T(-77));
  }));
}

TEST_P(CommTest, ReduceScatterFoldsInRankOrder) {
  for (int64_t shard : {0, 1, 5, 64, 4097, 20001}) {
    check_fold<float>(GetParam(), shard, GetParam());
    check_fold<double>(GetParam(), shard, GetParam());
  }
}

TEST_P(CommTest, ReduceScatterTakesTheFirstContributorsOnly) {
  for (int contributors = 0; contributors <= GetParam(); ++contributors) check_fold<float>(GetParam(), 130, contributors);
}

// The bits of a fold onto zeros, whatever lay there: -0 contributes as it would to +0, and without contributors zeros remain.
template <typename T>
void check_fold_from_zero(int n, int64_t shard, int contributors) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    std::vector<T> full(n * shard), fresh(shard + 1, std::numeric_limits<T>::quiet_NaN()), zeros(shard + 1, T(0));
    fresh[shard] = zeros[shard] = T(-77);
    for (int64_t i = 0; i < n * shard; ++i) full[i] = i % 3 == 0 ? T(-0.0) : ordered_value<T>(c.rank, i, 0);
    c.comm.reduce_scatter(full.data(), fresh.data(), shard, dtype, contributors, Fold::from_zero, c.stream);
    c.comm.reduce_scatter(full.data(), zeros.data(), shard, dtype, contributors, Fold::onto, c.stream);
    c.stream.synchronize();
    ASSERT_EQ(std::memcmp(fresh.data(), zeros.data(), fresh.size() * sizeof(T)), 0);
  }));
}

TEST_P(CommTest, ReduceScatterFromZeroGivesTheBitsOfAFoldOntoZeros) {
  for (int64_t shard : {0, 1, 64, 20001})
    for (int contributors : {0, 1, GetParam()}) {
      check_fold_from_zero<float>(GetParam(), shard, contributors);
      check_fold_from_zero<double>(GetParam(), shard, contributors);
    }
}

TEST_P(CommTest, AllReduceSumsInRankOrderEverywhere) {
  const int n = GetParam();
  for (int64_t count : {1, 2, 3, 10, 68, 1001}) {
    expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
      std::vector<double> data(count);
      std::vector<int64_t> ints(count);
      for (int64_t i = 0; i < count; ++i) {
        data[i] = ordered_value<double>(c.rank, i, 0);
        ints[i] = (int64_t{1} << 53) + c.rank + i;
      }
      c.comm.all_reduce(data.data(), count, DType::f64, c.stream);
      c.comm.all_reduce(ints.data(), count, DType::i64, c.stream);
      c.stream.synchronize();
      for (int64_t i = 0; i < count; ++i) {
        volatile double expected = ordered_value<double>(0, i, 0);
        for (int r = 1; r < n; ++r) expected = expected + ordered_value<double>(r, i, 0);
        ASSERT_EQ(data[i], expected);
        ASSERT_EQ(ints[i], n * (int64_t{1} << 53) + n * (n - 1) / 2 + n * i);
      }
    }));
  }
}

TEST_P(CommTest, BroadcastFromEveryRoot) {
  const int n = GetParam();
  expect_no_errors(on_ranks(n, 20s, [&](RankContext c) {
    for (int root = 0; root < n; ++root) {
      std::vector<int> data(33, c.rank == root ? root + 100 : -1);
      c.comm.broadcast(data.data(), 33 * sizeof(int), root, c.stream);
      c.stream.synchronize();
      for (int v : data) ASSERT_EQ(v, root + 100);
    }
  }));
}

TEST_P(CommTest, NobodyPassesABarrierEarly) {
  const int n = GetParam();
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
  const int n = GetParam();
  expect_no_errors(on_ranks(n, 60s, [&](RankContext c) {
    std::mt19937 rng(c.rank + 1), shared(5);
    std::vector<float> shard(97), full(97 * n), accumulator(97, 0.f);
    for (int k = 0; k < 300; ++k) {
      random_delay(rng);
      const int64_t count = 1 + shared() % 97;
      for (int64_t i = 0; i < count; ++i) shard[i] = static_cast<float>(c.rank + k);
      c.comm.all_gather(shard.data(), full.data(), count * 4, c.stream);
      c.comm.reduce_scatter(full.data(), accumulator.data(), count, DType::f32, n, Fold::onto, c.stream);
      c.stream.synchronize();  // the source may be changed from here on
      for (int r = 0; r < n; ++r) ASSERT_EQ(full[r * count + count - 1], static_cast<float>(r + k));
    }
  }));
}

TEST_P(CommTest, ManyCallsInFlight) {
  const int n = GetParam();
  expect_no_errors(on_ranks(n, 60s, [&](RankContext c) {
    std::vector<int64_t> data(5000, 1);
    for (int64_t& d : data) c.comm.all_reduce(&d, 1, DType::i64, c.stream);
    c.stream.synchronize();
    for (int64_t d : data) ASSERT_EQ(d, n);
  }));
}

TEST_P(CommTest, AMismatchEndsAllRanksNamingBoth) {
  const int n = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank cannot disagree with itself";
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    std::vector<char> buffer(4096);
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
  const int n = GetParam();
  if (n == 1) GTEST_SKIP() << "one rank cannot disagree with itself";
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    std::vector<double> a(64), b(64);
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
  const int n = GetParam();
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
  const int n = GetParam();
  if (n == 1) GTEST_SKIP() << "nobody to miss";
  auto errors = on_ranks(n, 1000ms, [&](RankContext c) {
    double x = 1;
    if (c.rank == 1) return;
    c.comm.all_reduce(&x, 1, DType::f64, c.stream);
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
  const int n = GetParam();
  auto errors = on_ranks(n, 20s, [&](RankContext c) {
    int32_t x[8] = {};
    EXPECT_THROW(c.comm.all_reduce(x, 1, DType::i32, c.stream), Error);
    EXPECT_THROW(c.comm.reduce_scatter(x, x, 1, DType::f32, n + 1, Fold::onto, c.stream), Error);
    EXPECT_THROW(c.comm.broadcast(x, 1, n, c.stream), Error);
  });
  expect_no_errors(errors);
  EXPECT_THROW(make_local_communicators(0, 1s), Error);
}

}  // namespace
}  // namespace zeroplan
