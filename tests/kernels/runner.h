#pragma once
// Runs one kernel on a case, in any layout that the op accepts, between guard bytes.
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "tests/op_cases/cases.h"

namespace zeroplan {

// How an operand lies in memory.
enum class MemoryLayout { contiguous, reversed_axes, padded_rows, every_other };

// Runs a kernel somewhere: the memory that it may touch is in these host buffers, which operands and workspace point into.
using RunKernel = std::function<void(OpKind op, KernelArgs& args, std::span<const std::span<std::byte>> memory)>;

// Where the tests of a program run kernels: the GPU, or the CPU with one of its instruction sets.
struct TestDevice {
  std::string name;
  RunKernel run;
  DeviceKind kind = DeviceKind::cpu;
};
std::vector<TestDevice> test_devices();  // each test program has its own
TestDevice cpu_device(const std::string& instruction_set);
// Runs the kernel there; all operands lie contiguously in host memory.
void run_kernel(const TestDevice& device, OpKind op, KernelArgs& args);

struct RunOptions {
  TestDevice device;
  int threads = 1;
  MemoryLayout layout = MemoryLayout::contiguous;    // of the operands that accept it
  std::optional<std::pair<int, int>> in_place = {};  // (output, input)
  int strided_inputs = 0;                            // out: how many operands took the layout
};

// Sets that this machine has.
std::vector<std::string> instruction_sets();

// Outputs of the case; EXPECTs that guards around outputs and workspace and all other inputs stay unchanged.
std::vector<HostTensor> run_case(const CaseGraph& built, RunOptions& options);

// A tensor with the bytes of `contents` laid out with `strides`, which may have gaps.
struct LaidOut {
  std::vector<std::byte> bytes;
  TensorView view;
};
LaidOut lay_out(const HostTensor& contents, const Strides& strides);

inline void PrintTo(const TestDevice& device, std::ostream* out) { *out << device.name; }

}  // namespace zeroplan
