#pragma once
#include <vector>

#include "tests/kernels/runner.h"

namespace zeroplan {

// A kernel with all that it is given.
struct StepCall {
  std::vector<TensorView> inputs, outputs;
  Attributes attributes;
  RunScalars scalars;
  UnitArgs unit;
  int threads = 1;

  void run(const TestDevice& device, OpKind op) {
    KernelArgs args;
    args.inputs = inputs.data();
    args.input_count = static_cast<int>(inputs.size());
    args.outputs = outputs.data();
    args.output_count = static_cast<int>(outputs.size());
    args.attributes = &attributes;
    args.unit = &unit;
    args.scalars = &scalars;
    args.threads = threads;
    run_kernel(device, op, args);
  }
};

}  // namespace zeroplan
