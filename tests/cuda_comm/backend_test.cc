// Which communicators the ranks get, and what is refused before anything is allocated.
#include "runtime/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "cuda_host/control.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/product_choices.h"
#include "tests/cuda_comm/talk.h"
#include "tests/error_of.h"

namespace zeroplan {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

Plan plan_of(int ranks) {
  Plan plan;
  plan.header.ranks = ranks;
  plan.header.device = DeviceKind::cuda;
  plan.arena_bytes = {1 << 20, 2 << 20, 4096};
  return plan;
}

class CudaBackend : public ::testing::Test {
 protected:
  ~CudaBackend() override { cuda_host::reset(); }
  std::string refusal(const Plan& plan) const {
    return error_of([&] { make_cuda_backend(plan, 5s); });
  }
  cuda_host::Settings& cuda = cuda_host::settings();
};

TEST_F(CudaBackend, RanksWithAGpuEachUseNccl) {
  cuda.device_count = 4;
  const Backend backend = make_cuda_backend(plan_of(4), 5s);
  EXPECT_THAT(backend.collectives, AllOf(HasSubstr("NCCL 2."), HasSubstr("4 GPUs"), HasSubstr("order of the ranks")));
  EXPECT_NE(backend.ranks[0].device, backend.ranks[3].device);
}

TEST_F(CudaBackend, RanksThatShareGpusDoNot) {
  cuda.device_count = 2;
  Plan plan = plan_of(3);
  plan.header.reduce = ReduceMode::fast;
  const Backend backend = make_cuda_backend(plan, 5s);
  EXPECT_THAT(backend.collectives, AllOf(HasSubstr("copies between 3 ranks on 2 GPUs"), HasSubstr("--reduce fast is NCCL's")));
  EXPECT_EQ(backend.ranks[0].device, backend.ranks[2].device);
  EXPECT_EQ(make_cuda_backend(plan_of(1), 5s).collectives, "");
}

TEST_F(CudaBackend, NoDeviceIsSaid) {
  cuda.device_count = 0;
  EXPECT_THAT(refusal(plan_of(1)), AllOf(HasSubstr("no GPU is at hand"), HasSubstr("--device cpu")));
  EXPECT_THAT(error_of(require_gpu), HasSubstr("no GPU is at hand"));
}

TEST_F(CudaBackend, AnOldDriverIsNamedWithBothVersions) {
  cuda.driver_version = 12020;
  EXPECT_THAT(refusal(plan_of(1)), AllOf(HasSubstr("driver is for CUDA 12.2"), HasSubstr("needs 13."), HasSubstr("update the driver")));
}

TEST_F(CudaBackend, ATooSmallDeviceIsToldByCategory) {
  cuda.device_memory = 5 << 20;
  EXPECT_THAT(refusal(plan_of(2)),
              AllOf(HasSubstr("GPU 0"), HasSubstr("too small"), HasSubstr("2 ranks on it need 6299648 bytes, 3149824 each"),
                    HasSubstr("are free"), HasSubstr("state 1048576"), HasSubstr("transient 2097152"), HasSubstr("--stage"),
                    HasSubstr("--micro-batches"), HasSubstr("--ranks")));
  EXPECT_EQ(cuda_host::device_bytes_in_use(0), 0u);
  cuda.device_count = 2;
  EXPECT_EQ(refusal(plan_of(2)), kNoError);
}

TEST_F(CudaBackend, ReceiveBuffersAreCounted) {
  cuda.device_count = 2;
  cuda.device_memory = (3 << 20) + 4096 + 100;
  EXPECT_THAT(refusal(plan_of(2)), AllOf(HasSubstr("too small"), HasSubstr("receive buffers 256")));
}

TEST_F(CudaBackend, MixedCardsAreNamed) {
  cuda.device_count = 2;
  cuda.other_card = 1;
  EXPECT_THAT(refusal(plan_of(2)), AllOf(HasSubstr("GPU 0 is a card of cuda_host"), HasSubstr("GPU 1 is another card")));
  EXPECT_EQ(refusal(plan_of(1)), kNoError);
}

TEST_F(CudaBackend, PeerAccessIsNeededWhereGpusAreShared) {
  cuda.device_count = 2;
  cuda.peer_access = false;
  EXPECT_THAT(refusal(plan_of(3)), AllOf(HasSubstr("GPU 0 cannot reach the memory of GPU 1"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_EQ(refusal(plan_of(2)), kNoError);
}

TEST_F(CudaBackend, AnOldNcclIsRefused) {
  cuda.device_count = 2;
  cuda.nccl_version = 22105;
  EXPECT_THAT(refusal(plan_of(2)), AllOf(HasSubstr("2.21.5"), HasSubstr("2.26.0")));
  EXPECT_EQ(refusal(plan_of(4)), kNoError);
}

TEST(GpuOfAProcess, IsThatOfItsNumberOrTheOnlyOne) {
  EXPECT_EQ(gpu_of(0, 4), 0);
  EXPECT_EQ(gpu_of(3, 4), 3);
  EXPECT_EQ(gpu_of(3, 1), 0);
  EXPECT_THAT(error_of([] { gpu_of(3, 2); }), AllOf(HasSubstr("process 3"), HasSubstr("2 GPUs"), HasSubstr("at most 2 processes")));
}

TEST(GpuOfAProcess, BelongsToOneAlone) {
  const GpuOfRank a{"m1", "00", "card", 1}, b{"m2", "00", "card", 1}, c{"m1", "00", "card", 1}, d{"m3", "01", "other", 1};
  EXPECT_EQ(trouble_of({a, b}), "");
  EXPECT_THAT(trouble_of({a, b, c}), AllOf(HasSubstr("ranks 0 and 2"), HasSubstr("m1"), HasSubstr("2 ranks run and see 1 GPU")));
  EXPECT_THAT(trouble_of({a, b, d}), AllOf(HasSubstr("rank 0 has card in m1"), HasSubstr("rank 2 has other in m3")));
  const GpuOfRank same = unpacked(packed(d));
  EXPECT_EQ(same.machine + same.id + same.card, "m301other");
  EXPECT_EQ(same.seen, 1);
}

TEST(ProductChoice, OfAnotherRankIsTheSame) {
  ProductChoice one, two;
  for (int w = 0; w < 8; ++w) one.algorithm.data[w] = ~uint64_t{0} / 7 * w, two.algorithm.data[w] = w;
  one.adds_bias = true;
  const ProductChoices choices = {{"1 of f32 [2, 3] · [3, 4]; a by 3", one}, {"2 of bf16 [2, 3]ᵀ", two}};
  const ProductChoices there = unpacked_choices(packed(choices), 1);
  EXPECT_EQ(packed(there), packed(choices));
  ASSERT_EQ(there.size(), 2u);
  for (const auto& [product, choice] : choices) {
    EXPECT_TRUE(std::ranges::equal(there.at(product).algorithm.data, choice.algorithm.data));
    EXPECT_EQ(there.at(product).adds_bias, choice.adds_bias);
  }
  EXPECT_EQ(choices_line(there), choices_line(choices));
  EXPECT_NE(choices_line({{"1", one}}), choices_line({{"1", two}}));
}

TEST(ProductChoice, OfAnotherVersionIsRefused) {
  const std::string text = packed(ProductChoices{}), version = text.substr(0, text.find('\n'));
  EXPECT_THAT(error_of([] { unpacked_choices("12.9.1\n", 3); }),
              AllOf(HasSubstr("rank 0 has cuBLASLt 12.9.1, this rank " + version), HasSubstr("same libraries"), HasSubstr("rank 3")));
}

std::vector<std::string> run_processes(int ranks, const std::vector<int>& local_ranks) {
  Talk talk(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      errors[r] = error_of([&] {
        const Backend backend = make_cuda_process_backend(plan_of(ranks), 5s, talk.job(r, local_ranks[r]));
        const RankBackend& own = backend.ranks.at(0);
        own.device->use();
        const auto memory = own.device->alloc(ranks * 8);
        const auto stream = own.device->new_stream(StreamKind::gather);
        auto* words = static_cast<int64_t*>(memory->data());
        const int64_t mine = r + 1;
        stream->copy(words + r, &mine, 8);
        own.gather->all_gather(words + r, words, 8, *stream);
        own.reduce->all_reduce(words, ranks, DType::i64, *stream);
        std::vector<int64_t> all(ranks);
        stream->copy(all.data(), words, ranks * 8);
        stream->synchronize();
        for (int i = 0; i < ranks; ++i) EXPECT_EQ(all[i], ranks * (i + 1));
      });
    });
  for (auto& t : threads) t.join();
  return errors;
}

TEST_F(CudaBackend, ProcessesFindEachOther) {
  cuda.device_count = 3;
  for (const std::string& e : run_processes(3, {0, 1, 2})) EXPECT_EQ(e, kNoError);
}

TEST_F(CudaBackend, ProcessesOnOneGpuAreRefusedAlike) {
  for (const std::string& e : run_processes(2, {0, 1}))
    EXPECT_THAT(e, AllOf(HasSubstr("ranks 0 and 1"), HasSubstr("2 ranks run and see 1 GPU")));
}

TEST_F(CudaBackend, MixedCardsOfProcessesAreRefusedAlike) {
  cuda.device_count = 2;
  cuda.other_card = 1;
  for (const std::string& e : run_processes(2, {0, 1})) EXPECT_THAT(e, AllOf(HasSubstr("the GPUs differ"), HasSubstr("rank 1")));
}

}  // namespace
}  // namespace zeroplan
