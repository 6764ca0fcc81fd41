// What a communicator must do, where each rank is a process. Run by mpirun with any number of processes; each checks its own part.
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <thread>

#include "base/half.h"
#include "runtime/mpi/mpi_job.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;

MpiJob* job = nullptr;

constexpr int64_t kSlot = 1024;  // bytes: reductions need several pieces

struct OwnRank {
  std::unique_ptr<Communicator> comm = job->new_communicator(20s, kSlot);
  std::unique_ptr<Device> device = make_cpu_device(1);
  std::unique_ptr<Stream> stream = device->new_stream(StreamKind::gather);
};

// Sums of these depend on their order.
float term(int rank, int64_t i) {
  return static_cast<float>(rank % 2 ? 1e8 : -1e8) + static_cast<float>(i % 97) * 0.37F + static_cast<float>(rank);
}

TEST(MpiComm, AllGatherInPlaceAndApart) {
  OwnRank s;
  const int n = job->size(), own = job->rank();
  for (const int64_t bytes : {0, 1, 7, 64, 100003})
    for (const bool in_place : {false, true}) {
      std::vector<unsigned char> shard(bytes), full(n * bytes + 1, 0xEE);
      for (int64_t i = 0; i < bytes; ++i) shard[i] = static_cast<unsigned char>(i * 31 + own * 7);
      unsigned char* from = in_place ? full.data() + own * bytes : shard.data();
      if (in_place) std::copy(shard.begin(), shard.end(), from);
      s.comm->all_gather(from, full.data(), bytes, *s.stream);
      s.stream->synchronize();
      for (int r = 0; r < n; ++r)
        for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(full[r * bytes + i], static_cast<unsigned char>(i * 31 + r * 7));
      ASSERT_EQ(full[n * bytes], 0xEE);
    }
}

TEST(MpiComm, ReduceScatterFoldsInTheOrderOfTheRanks) {
  OwnRank s;
  const int n = job->size(), own = job->rank();
  for (const int64_t count : {0, 1, 1000, 5003})
    for (int contributors = 0; contributors <= n; ++contributors)
      for (const Fold fold : {Fold::onto, Fold::from_zero}) {
        std::vector<float> full(n * count), sum(count, 2.5F);
        for (int64_t i = 0; i < n * count; ++i) full[i] = term(own, i);
        s.comm->reduce_scatter(full.data(), sum.data(), count, DType::f32, contributors, fold, *s.stream);
        s.stream->synchronize();
        for (int64_t i = 0; i < count; ++i) {
          float expected = fold == Fold::onto ? 2.5F : 0.0F;
          for (int r = 0; r < contributors; ++r) expected += term(r, own * count + i);
          ASSERT_EQ(sum[i], expected) << i << " of " << count << ", " << contributors << " contributors";
        }
      }
}

// What travels has half a float's bits, what it is added to all of them.
template <typename Half>
void expect_fold_in_float(DType dtype) {
  OwnRank s;
  const int n = job->size(), own = job->rank();
  const auto value = [](int rank, int64_t i) { return Half(static_cast<float>(i % 89) * 0.37F + static_cast<float>(1000 * rank)); };
  for (const int64_t count : {1, 1000, 5003}) {
    std::vector<Half> full;
    for (int64_t i = 0; i < n * count; ++i) full.push_back(value(own, i));
    std::vector<float> sum(count, 0.25F);
    s.comm->reduce_scatter(full.data(), sum.data(), count, dtype, n, Fold::onto, *s.stream);
    s.stream->synchronize();
    for (int64_t i = 0; i < count; ++i) {
      float expected = 0.25F;
      for (int r = 0; r < n; ++r) expected += static_cast<float>(value(r, own * count + i));
      ASSERT_EQ(sum[i], expected) << i << " of " << count;
    }
  }
}

TEST(MpiComm, HalfTypesAreAddedUpInFloat) {
  expect_fold_in_float<Float16>(DType::f16);
  expect_fold_in_float<BFloat16>(DType::bf16);
}

TEST(MpiComm, AllReduceGivesAllRanksTheSameBits) {
  OwnRank s;
  const int n = job->size(), own = job->rank();
  for (const int64_t count : {1, 2, 5, 4099, 10007}) {
    std::vector<float> data(count);
    for (int64_t i = 0; i < count; ++i) data[i] = term(own, i);
    s.comm->all_reduce(data.data(), count, DType::f32, *s.stream);
    s.stream->synchronize();
    for (int64_t i = 0; i < count; ++i) {
      float expected = term(0, i);
      for (int r = 1; r < n; ++r) expected += term(r, i);
      ASSERT_EQ(data[i], expected) << i << " of " << count;
    }
  }
}

TEST(MpiComm, BroadcastFromEachRank) {
  OwnRank s;
  for (int root = 0; root < job->size(); ++root) {
    std::vector<int> data(1000, job->rank() == root ? root + 5 : -1);
    s.comm->broadcast(data.data(), static_cast<int64_t>(data.size() * sizeof(int)), root, *s.stream);
    s.stream->synchronize();
    ASSERT_EQ(data, std::vector<int>(1000, root + 5));
  }
}

TEST(MpiComm, BarrierWaitsForTheLast) {
  OwnRank s;
  for (int last = 0; last < job->size(); ++last) {
    if (job->rank() == last) std::this_thread::sleep_for(20ms);
    s.comm->barrier(*s.stream);
    s.stream->synchronize();
  }
}

// Gathers and reductions go on at the same time.
TEST(MpiComm, TwoCommunicatorsDoNotMixTheirMessages) {
  OwnRank a, b;
  const int n = job->size(), own = job->rank();
  std::vector<int> gathered(n * 1000);
  std::vector<double> data(1000);
  for (int round = 0; round < 50; ++round) {
    std::fill_n(gathered.begin() + own * 1000, 1000, own * 100 + round);
    std::fill(data.begin(), data.end(), own + round);
    a.comm->all_gather(gathered.data() + own * 1000, gathered.data(), 1000 * sizeof(int), *a.stream);
    b.comm->all_reduce(data.data(), 1000, DType::f64, *b.stream);
    a.stream->synchronize();
    b.stream->synchronize();
    for (int r = 0; r < n; ++r) ASSERT_EQ(gathered[r * 1000 + 999], r * 100 + round);
    ASSERT_EQ(data[500], n * (n - 1) / 2.0 + n * round);
  }
}

// MPI makes no progress by itself, and whoever waits must look; but not all the time.
TEST(MpiComm, AWaitForASlowPeerTakesLittleOfTheProcessor) {
  OwnRank s;
  const std::clock_t before = std::clock();
  if (job->rank() == 0) std::this_thread::sleep_for(3s);
  s.comm->barrier(*s.stream);
  s.stream->synchronize();
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  std::printf("rank %d: %.3f s of processor time\n", job->rank(), seconds);
  EXPECT_LT(seconds, 0.3);
}

TEST(MpiJob, GathersOnTheFirstRankAndBroadcastsFromIt) {
  for (const size_t most : {size_t{0}, size_t{1}, size_t{100}, size_t{3} << 20}) {
    const auto text = [most](int rank) { return std::string(most * (rank + 1), static_cast<char>('a' + rank)); };
    const std::vector<std::string> all = job->gather(text(job->rank()));
    ASSERT_EQ(static_cast<int>(all.size()), job->rank() == 0 ? job->size() : 0);
    for (size_t r = 0; r < all.size(); ++r) EXPECT_TRUE(all[r] == text(static_cast<int>(r))) << r;
    EXPECT_TRUE(job->broadcast(text(job->rank())) == text(0));
  }
}

TEST(MpiJob, ClocksOfOneMachineAreOne) {
  const std::vector<int64_t> offsets = job->clock_offsets();
  EXPECT_EQ(offsets, std::vector<int64_t>(job->rank() == 0 ? job->size() : 0));
}

TEST(MpiJob, MeetingWaitsForTheLast) {
  const auto begin = std::chrono::steady_clock::now();
  if (job->rank() == job->size() - 1) std::this_thread::sleep_for(200ms);
  job->meet();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
}

}  // namespace
}  // namespace zeroplan

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::unique_ptr<zeroplan::MpiJob> here = zeroplan::start_mpi();
  zeroplan::job = here.get();
  return RUN_ALL_TESTS();
}
