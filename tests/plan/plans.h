#pragma once
// Compiled plans that the tests of this folder share.
#include <string>

#include "runtime/plan/verifier.h"
#include "tests/lower/models.h"

namespace zeroplan::test {

// A residual network with tied embedding, a frozen parameter and views; eval programs included. Each rank runs `rounds` micro-batches.
Plan residual_plan(int ranks, int stage, int prefetch = 1, int rounds = 1);
// The same in 16 bits.
Plan half_plan(int ranks, int stage, DType precision, int rounds = 1);
// tests/models/NAME/model.onnx, two samples per micro-batch; eval programs included.
Plan model_plan(const std::string& name, int ranks, int stage, int prefetch = 1);
// Two products with batch normalization behind each, in training mode; eval programs included. `sync`: statistics of all ranks.
Plan normalized_plan(int ranks, int stage, int rounds = 1, bool sync = false);
// The same without running statistics, as where a model computes them; one sample per micro-batch.
Plan unrecorded_plan(int ranks, bool sync, int64_t micro_batches, bool eval = false);
Plan chain_plan(int ranks, int stage, int prefetch = 1, int rounds = 1);

// One violation per line; empty for a plan that is safe.
std::string violations(const Plan& plan);
void set_digest(Plan& plan);

}  // namespace zeroplan::test
