// Nothing is allocated between the first training step and the last: operator new of this program counts.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/e2e_support/golden.h"
#include "tests/e2e_support/tiny_run.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  bytes = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, alignof(std::max_align_t)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace zeroplan {
namespace {

TEST(T08, TheCounterCounts) {
  const int64_t before = allocations;
  EXPECT_EQ(std::vector<int>(100).size(), 100u);
  EXPECT_GT(allocations, before);
}

TinyCase chain() { return TinyCase(tiny_chain({10, 100, 10, 100, 10}), {{"x", random_tensor({40, 10}, 3)}}); }

TEST(T08, NoAllocationAfterTheFirstStep) {
  const TinyCase tiny = chain();
  CompileOptions base;  // AdamW
  base.batch = 8;
  base.micro_batches = 8;
  for (const CompileOptions& options : everywhere(base)) {
    const Plan plan = tiny.compile(options);
    const auto executor = make_executor(plan);
    const auto data = tiny.data(plan);
    executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.01));
    const int64_t before = allocations;
    for (int64_t step = 1; step < 5; ++step) executor->train_step(*data, step * 8, nullptr, scalars_of_step(step, 0.01));
    EXPECT_EQ(allocations - before, 0) << describe(options);
  }
}

TEST(T08, ConvolutionsAndPoolsAllocateNothing) {
  const Golden golden = read_golden("resnet_nano_eval", "golden");
  const Plan plan = compile(model_folder("resnet_nano_eval") + "/model.onnx", golden.compile);
  const auto executor = make_executor(plan);
  const auto data = open_npy_folder(model_folder("resnet_nano_eval") + "/data", plan);
  executor->train_step(*data, 0, nullptr, scalars_of_step(0, 0.01));
  const int64_t before = allocations;
  for (int64_t step = 1; step < 5; ++step) executor->train_step(*data, step * 8, nullptr, scalars_of_step(step, 0.01));
  EXPECT_EQ(allocations - before, 0);
}

TEST(T08, EqualPeakInTheFirstAndTheFifthStep) {
  const TinyCase tiny = chain();
  ExecutorOptions check;
  check.check_memory = true;
  CompileOptions base;
  base.batch = 8;
  for (const CompileOptions& options : everywhere(base)) {
    const TinyRun run = train(tiny, options, sgd_run(0.01, 5), check);
    EXPECT_GT(run.steps.at(0).arena_high_water, 0);
    EXPECT_EQ(run.steps.at(4).arena_high_water, run.steps.at(0).arena_high_water) << describe(options);
  }
}

}  // namespace
}  // namespace zeroplan
