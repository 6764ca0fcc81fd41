// Unary, binary and ternary elementwise operators and chains of them.
#include <algorithm>

#include "graph/ops/elementwise.h"
#include "kernels/cpu/elementwise_engine.h"
#include "kernels/cpu/kernels.h"
#include "kernels/failures.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename T>
void run_single(OpKind op, const KernelArgs& args) {
  Chain<T> chain;
  chain.operand_count = args.input_count;
  chain.instruction_count = 1;
  auto& step = chain.instructions[0];
  step.run = block_function<T>(op, args.attributes ? args.attributes->get_int(Attr::approximate, 0) : 0);
  for (int i = 0; i < 3; ++i) step.operands[i] = i < args.input_count ? i : -1;
  run_chain(chain, args.inputs, args.outputs[0], args.threads);
}

// Computed in the type of the operands; integers in 64 bits with sign, which holds all but uint64; boolean and 16-bit floating point as
// float, which is exact for them.
void run_elementwise_op(OpKind op, const KernelArgs& args) {
  const DType dtype = args.inputs[args.input_count - 1].dtype;  // where: not the condition
  switch (dtype) {
    case DType::f64: return run_single<double>(op, args);
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u32:
    case DType::u16:
    case DType::u8: return run_single<int64_t>(op, args);
    case DType::u64: return run_single<uint64_t>(op, args);
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::boolean: return run_single<float>(op, args);
  }
  unhandled_dtype(dtype);
}

template <typename T>
void run_program(const KernelArgs& args) {
  const ElementwiseCode& code = *args.chain;
  Chain<T> chain;
  chain.operand_count = args.input_count;
  chain.constant_count = static_cast<int>(code.constants.size());
  chain.instruction_count = static_cast<int>(code.instructions.size());
  if (chain.operand_count > kMaxChainOperands || chain.constant_count > kMaxChainInstructions ||
      chain.instruction_count > kMaxChainInstructions || chain.registers() > kMaxChainRegisters) {
    chain_too_long();
  }
  for (int i = 0; i < chain.constant_count; ++i) chain.constants[i] = code.constants[i];
  for (int i = 0; i < chain.instruction_count; ++i) {
    const ElementwiseInstruction& from = code.instructions[i];
    auto& step = chain.instructions[i];
    step.run = block_function<T>(from.op, from.approximate);
    step.operands[0] = from.a, step.operands[1] = from.b, step.operands[2] = from.c;
  }
  run_chain(chain, args.inputs, args.outputs[0], args.threads);
}

}  // namespace

void elementwise_kernel(const KernelArgs& args) {
  visit_floating(wide_dtype(args.outputs[0].dtype), [&](auto zero) { run_program<decltype(zero)>(args); });
}

#define ZP_OP(name)
#define ZP_KERNEL_OP(name)
#define ZP_SINGLE(name) \
  void name##_kernel(const KernelArgs& args) { run_elementwise_op(OpKind::name, args); }
#define ZP_UNARY_OP(name) ZP_SINGLE(name)
#define ZP_BINARY_OP(name) ZP_SINGLE(name)
#define ZP_TERNARY_OP(name) ZP_SINGLE(name)
#include "graph/ops/ops.def"
#undef ZP_SINGLE
#undef ZP_OP

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
