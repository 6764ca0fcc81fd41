#pragma once
// Runs one kernel on a case, in any layout that the op accepts, between guard bytes.
#include <functional>
#include <optional>
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

struct RunOptions {
  std::string instruction_set;  // of the CPU
  int threads = 1;
  MemoryLayout layout = MemoryLayout::contiguous;    // of the operands that accept it
  std::optional<std::pair<int, int>> in_place = {};  // (output, input)
  int strided_inputs = 0;                            // out: how many operands took the layout
  DeviceKind device = DeviceKind::cpu;
  RunKernel run = {};  // none: the CPU kernel
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

}  // namespace zeroplan
