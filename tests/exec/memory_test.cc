// Memory: what a run touches, what it must not touch, and that it allocates nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "tests/exec/chain_plan.h"

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are replaced below

namespace {
std::atomic<int64_t> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
  throw std::bad_alloc();
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }

namespace zeroplan {
namespace {

using test::ChainData;
using test::ChainOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;

ExecutorOptions chain_options() {
  ExecutorOptions options;
  options.backend = test::chain_backend;
  return options;
}

StepReport step(Executor& executor, const ChainData& data) {
  RunScalars scalars;
  scalars.step = 1;
  return executor.train_step(data, 0, nullptr, scalars);
}

TEST(Memory, TrainingAllocatesNothingAfterTheFirstStep) {
  for (int ranks : {1, 3}) {
    for (bool trace : {false, true}) {
      const ChainOptions o{.ranks = ranks, .micro_batches = 4};
      ExecutorOptions options = chain_options();
      options.trace = trace;
      Executor executor(std::vector{test::make_chain_plan(o)}, test::chain_weights(), options);
      ChainData data(1000, o.width);
      step(executor, data);
      const int64_t before = allocations.load();
      for (int i = 0; i < 5; ++i) step(executor, data);
      EXPECT_EQ(allocations.load() - before, 0) << ranks << " ranks";
    }
  }
}

TEST(Memory, TheHighWaterMarkIsThePlannedSize) {
  for (int ranks : {1, 2, 3, 4}) {  // of four micro-batches: with 4 ranks the gradients are carried
    const ChainOptions o{.ranks = ranks};
    ExecutorOptions options = chain_options();
    options.check_memory = true;
    Executor executor(std::vector{test::make_chain_plan(o)}, test::chain_weights(), options);
    ChainData data(1000, o.width);
    const StepReport report = step(executor, data);
    EXPECT_EQ(report.arena_high_water, executor.arena_bytes());
    const auto dense = test::run_dense(o, 1, RunScalars{}.lr);
    EXPECT_EQ(executor.weights(2).get(7), dense.weights[2][7]) << "check mode changes no number";
  }
  Executor plain(std::vector{test::make_chain_plan({})}, test::chain_weights(), chain_options());
  EXPECT_EQ(step(plain, ChainData(1000, 100)).arena_high_water, 0);
}

TEST(Memory, AWriteBehindTheArenaIsNamed) {
  ExecutorOptions options = chain_options();
  options.check_memory = true;
  const auto plan = test::make_chain_plan({.ranks = 2, .overflow_bytes = 128});
  Executor executor(std::vector{plan}, test::chain_weights(), options);
  try {
    step(executor, ChainData(1000, 100));
    FAIL() << "the write went unnoticed";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("past the end of the transient arena"), HasSubstr("silu_grad"), HasSubstr("micro_step[")));
  }
}

TEST(Memory, ArenasTooLargeAreAnErrorWithTheBytes) {
  Plan huge = *test::make_chain_plan({});
  huge.arena_bytes[static_cast<int>(Arena::transient)] = int64_t{1} << 60;
  try {
    Executor executor(std::vector<std::shared_ptr<const Plan>>{std::make_shared<Plan>(huge)}, test::chain_weights(), chain_options());
    FAIL() << "2^60 bytes were given";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("1152921504606846976 bytes asked for"));
  }
}

}  // namespace
}  // namespace zeroplan
