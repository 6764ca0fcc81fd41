#pragma once
// A plan made by hand, with kernels of its own: U units in a chain, x' = x·scale + shift, loss = Σ x²/2, plain gradient descent.
// The same loops run as kernels and in a dense reference, so that results can be compared bit by bit.
#include <memory>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/data/data_source.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.h"

namespace zeroplan::test {

struct ChainOptions {
  int ranks = 1;
  int64_t micro_batches = 4;
  int64_t samples = 3;  // per micro-batch
  int units = 3;
  int64_t width = 100;  // elements of scale and of shift
  int prefetch = 1;
  int64_t overflow_bytes = 0;  // the transient arena is stated this much too small
};

std::shared_ptr<const Plan> make_chain_plan(const ChainOptions& options);
// nullptr for ops that the chain does not use.
Kernel chain_kernel(OpKind op);
// CPU ranks with those kernels.
Backend chain_backend(const Plan& plan, std::chrono::milliseconds deadline);
// Initial element of a parameter; parameters are scale and shift of each unit in turn.
float chain_weight(int parameter, int64_t element);
WeightReader chain_weights();

// Data in memory, one value per element: a fixed function of the sample.
class ChainData : public DataSource {
 public:
  ChainData(int64_t samples, int64_t width) : samples_(samples), width_(width) {}
  int64_t samples() const override { return samples_; }
  void read(int index, int64_t first, int64_t count, const int64_t* order, const TensorView& to) const override;
  static float value(int64_t sample, int64_t element);

 private:
  int64_t samples_, width_;
};

struct DenseResult {
  std::vector<std::vector<float>> weights;    // by parameter
  std::vector<std::vector<float>> gradients;  // sums over the last window
  double loss = 0, weight = 0;                // of the last window
};

// `steps` optimizer steps on one rank without any plan; `update_last`: also the last one updates.
DenseResult run_dense(const ChainOptions& options, int steps, double lr, bool update_last = true);

}  // namespace zeroplan::test
