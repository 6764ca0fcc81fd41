// Where GPUs would choose other algorithms for products: all ranks compute by those of rank 0, or none starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_host/control.h>
#include <fmt/format.h>

#include <thread>

#include "runtime/cuda/cuda_backend.h"
#include "tests/cuda_comm/talk.h"
#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const Plan> mlp_plan(int ranks, int stage = 3) {
  CompileOptions options = read_golden("mlp", "golden").compile;
  options.device = DeviceKind::cuda;
  options.ranks = ranks;
  options.stage = stage;
  options.micro_batches = 4;
  return std::make_shared<const Plan>(compile(model_folder("mlp") + "/model.onnx", options));
}

struct Outcome {
  std::string numbers;   // losses and gradient norms of three steps
  std::string products;  // what the run says about them
  std::string error;
  auto operator<=>(const Outcome&) const = default;
};

using MakeBackend = decltype(ExecutorOptions::backend);

Outcome train(const std::shared_ptr<const Plan>& plan, const MakeBackend& backend) {
  Outcome outcome;
  try {
    ExecutorOptions options;
    options.backend = backend;
    Executor executor({plan}, open_weights(*plan), options);
    outcome.products = executor.products();
    const auto data = open_npy_folder(model_folder("mlp") + "/data", *plan);
    for (int64_t step = 0; step < 3; ++step) {
      const StepReport report = executor.train_step(*data, step * plan->header.batch, nullptr, scalars_of_step(step, 0.1));
      outcome.numbers += fmt::format("{} {} ", report.loss, report.grad_norm);
    }
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

class CudaProducts : public testing::Test {
 protected:
  CudaProducts() { cuda.device_count = 2; }
  ~CudaProducts() override { cuda_host::reset(); }

  // Each rank a process: with an executor, a backend and choices of its own.
  std::vector<Outcome> in_processes(int ranks) const {
    Talk talk(ranks);
    std::vector<Outcome> outcomes(ranks);
    std::vector<std::thread> threads;
    const auto plan = mlp_plan(ranks);
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        outcomes[r] = train(plan, [&, r](const Plan& p, std::chrono::milliseconds deadline) {
          return make_cuda_process_backend(p, deadline, talk.job(r, r));
        });
      });
    for (std::thread& t : threads) t.join();
    return outcomes;
  }

  cuda_host::Settings& cuda = cuda_host::settings();
};

TEST_F(CudaProducts, TheSwitchOfTheStandInChangesBits) {
  const Outcome first = train(mlp_plan(1), make_cuda_backend);
  cuda.other_products = 0;
  const Outcome other = train(mlp_plan(1), make_cuda_backend);
  EXPECT_EQ(first.error + other.error, "");
  EXPECT_NE(first.numbers, other.numbers);
  EXPECT_NE(first.products, other.products);
}

TEST_F(CudaProducts, ThreadsUseThoseOfRankZero) {
  const Outcome alone = train(mlp_plan(1), make_cuda_backend);
  cuda.other_products = 1;
  EXPECT_EQ(train(mlp_plan(2), make_cuda_backend), alone);
}

TEST_F(CudaProducts, ProcessesUseThoseOfRankZero) {
  const Outcome alone = train(mlp_plan(1), make_cuda_backend);
  cuda.other_products = 1;
  for (const Outcome& outcome : in_processes(2)) EXPECT_EQ(outcome, alone);
}

TEST_F(CudaProducts, TheRunSaysWhich) {
  const std::string line = train(mlp_plan(1), make_cuda_backend).products;
  EXPECT_THAT(line, AllOf(HasSubstr("matrix products by cuBLASLt 1"), HasSubstr("chosen by rank 0: ")));
  for (const int ranks : {1, 2})
    for (const int stage : {0, 3}) EXPECT_EQ(train(mlp_plan(ranks, stage), make_cuda_backend).products, line);
}

// Chosen at the start alone: the library is not asked again, in no step and no graph.
TEST_F(CudaProducts, TheLibraryIsAskedOnceForEach) {
  const Outcome outcome = train(mlp_plan(2), make_cuda_backend);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.products, HasSubstr(fmt::format("{} matrix products", cuda_host::call_count("cublasLtMatmulAlgoGetHeuristic"))));
}

TEST_F(CudaProducts, AGpuThatCannotIsNamedAtTheStart) {
  cuda.other_products = 1;
  cuda.own_products_only = true;
  const auto refusal =
      AllOf(HasSubstr("cannot make the product"), HasSubstr("f32 [2, "), HasSubstr("rank 0 has chosen: CUBLAS_STATUS_NOT_SUPPORTED"),
            HasSubstr("Give them equal GPUs"), HasSubstr("(rank 1, micro_step["), HasSubstr("matmul, node "));
  const Outcome threads = train(mlp_plan(2), make_cuda_backend);
  EXPECT_EQ(threads.numbers, "");
  EXPECT_THAT(threads.error, refusal);
  EXPECT_EQ(train(mlp_plan(1), make_cuda_backend).error, "");
}

}  // namespace
}  // namespace zeroplan
