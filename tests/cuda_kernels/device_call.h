#pragma once
// Runs a CUDA kernel on copies of host memory.
#include <span>
#include <string>

#include "kernels/cuda/context.h"
#include "tests/kernels/runner.h"

namespace zeroplan {

// Copies the buffers to the device, runs the op's CUDA kernel with every pointer moved there, and copies them back. Throws Error where the
// kernel reported a fault, or where the op has none.
void run_on_device(OpKind op, KernelArgs& args, std::span<const std::span<std::byte>> memory);
void run_on_device(Kernel kernel, KernelArgs& args, std::span<const std::span<std::byte>> memory);

}  // namespace zeroplan
