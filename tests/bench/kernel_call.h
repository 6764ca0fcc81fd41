#pragma once
// A kernel call with its operands in memory of its own, for benchmarks.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>

#include "graph/ops/elementwise.h"
#include "kernels/kernel.h"

namespace zeroplan {

// The operands of one kernel call and the memory behind them.
class Call {
 public:
  explicit Call(OpKind op, Attributes attributes = {}) : kernel_(cpu_kernel(op)), attributes_(std::move(attributes)) {
    prepare_cpu_kernels();
  }
  Call& input(DType dtype, Shape shape, double low = -1, double high = 1) { return add(inputs_, dtype, std::move(shape), low, high); }
  Call& view(TensorView view) {
    inputs_.push_back(view);
    return *this;
  }
  Call& output(DType dtype, Shape shape) { return add(outputs_, dtype, std::move(shape), 0, 1); }
  Call& in_place(int input) {
    outputs_.push_back(inputs_[input]);
    return *this;
  }
  TensorView& operand(int i) { return inputs_[i]; }
  RunScalars scalars;
  UnitArgs unit;
  ElementwiseCode chain;

  // Reports `bytes` moved or `flops` done per call, whichever is given.
  void measure(benchmark::State& state, double bytes, double flops = 0, int64_t workspace_bytes = 0) {
    KernelArgs args;
    args.threads = static_cast<int>(state.range(0));
    workspace_bytes *= args.threads;
    args.inputs = inputs_.data();
    args.input_count = static_cast<int>(inputs_.size());
    args.outputs = outputs_.data();
    args.output_count = static_cast<int>(outputs_.size());
    args.workspace = allocate(workspace_bytes);
    args.workspace_bytes = workspace_bytes;
    args.attributes = &attributes_;
    args.chain = &chain;
    args.unit = &unit;
    args.scalars = &scalars;
    for (auto _ : state) kernel_(args);
    const double calls = static_cast<double>(state.iterations());
    if (flops > 0) state.counters["GFLOP/s"] = benchmark::Counter(flops * calls * 1e-9, benchmark::Counter::kIsRate);
    if (bytes > 0) state.counters["GB/s"] = benchmark::Counter(bytes * calls * 1e-9, benchmark::Counter::kIsRate);
  }

 private:
  void* allocate(int64_t bytes) {
    memory_.emplace_back(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096 + 4096), std::free);
    std::memset(memory_.back().get(), 0, bytes);
    return memory_.back().get();
  }
  Call& add(std::vector<TensorView>& to, DType dtype, Shape shape, double low, double high) {
    const int64_t count = elements(shape);
    TensorView view = make_view(allocate(count * dtype_bytes(dtype)), dtype, shape);
    std::mt19937 random(static_cast<unsigned>(count));
    std::uniform_real_distribution<double> values(low, high);
    visit_dtype(dtype, [&](auto zero) {
      for (int64_t i = 0; i < count; ++i) view.as<decltype(zero)>()[i] = static_cast<decltype(zero)>(values(random));
    });
    to.push_back(view);
    return *this;
  }

  Kernel kernel_;
  Attributes attributes_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
};

#define ZP_BENCH(...) BENCHMARK(__VA_ARGS__)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond)
#define ZP_BENCH_CASE(...) BENCHMARK_CAPTURE(__VA_ARGS__)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond)

}  // namespace zeroplan
