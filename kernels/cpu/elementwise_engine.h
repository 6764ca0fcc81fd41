#pragma once
// Runs a chain of elementwise instructions over a broadcast, strided space, block by block.
#include "kernels/cpu/block_ops.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

inline constexpr int kMaxChainOperands = 32;
inline constexpr int kMaxChainInstructions = 128;
inline constexpr int kMaxChainRegisters = 256;
inline constexpr int kMaxChainScratch = 40;  // blocks of scratch that are alive at once
inline constexpr int64_t kChainBlock = 512;  // elements

// Registers: operands, constants, then one per instruction; the last instruction gives the output.
template <typename T>
struct Chain {
  struct Instruction {
    BlockFn<T> run;
    int operands[3];  // registers; -1 unused
  };
  int operand_count = 0;
  int constant_count = 0;
  double constants[kMaxChainInstructions];
  int instruction_count = 0;
  Instruction instructions[kMaxChainInstructions];

  int first_instruction() const { return operand_count + constant_count; }
  int registers() const { return first_instruction() + instruction_count; }
};

// Operands are converted to T as they are read and the result to y's type as it is written. y may share bytes with an operand of its
// type, shape and strides.
template <typename T>
void run_chain(const Chain<T>& chain, const TensorView* operands, const TensorView& y, int threads);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
