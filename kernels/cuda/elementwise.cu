// Elementwise operators and chains of them: one kernel that interprets a short program, four elements per thread.
#include "graph/ops/elementwise.h"
#include "graph/ops/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/space.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/failures.h"
#include "kernels/scalar/elementwise.h"
#include "kernels/scalar/integers.h"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kOperands = 32, kConstants = 128, kInstructions = 288, kSlots = 40, kWidth = 4;

// What an instruction does: an operator (its tanh form: kTanh + the operator), or one of two ways to fill a slot.
constexpr int16_t kTanh = 1024, kLoad = 2048, kConstant = 2049;

struct Instruction {
  int16_t code;
  int16_t a, b, c;  // slots; of kLoad the operand, of kConstant the constant
  int16_t to;       // slot
};

struct Operand {
  void* data;
  DType dtype;
};

// Slots hold kWidth elements each; the last instruction leaves the result in its slot.
struct Program {
  Space<kOperands + 1> space;  // operand 0 is y, operand i + 1 the chain's operand i
  Operand operands[kOperands + 1];
  double constants[kConstants];
  Instruction instructions[kInstructions];
  int operand_count = 0, count = 0;
  bool dense = false;  // every offset is the index
};

template <typename T>
__device__ T apply(int code, T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (code) {
#define ZP_APPLY1(functor) functor::apply(a)
#define ZP_APPLY2(functor) functor::apply(a, b)
#define ZP_APPLY3(functor) functor::apply(a, b, c)
#define ZP_FUNCTOR(arity, op, functor) \
  case static_cast<int>(OpKind::op): { \
    return ZP_APPLY##arity(functor);   \
  }
#define ZP_TANH_FUNCTOR(arity, op, functor)    \
  case kTanh + static_cast<int>(OpKind::op): { \
    return ZP_APPLY##arity(functor);           \
  }
#include "kernels/scalar/functors.def"
#undef ZP_APPLY1
#undef ZP_APPLY2
#undef ZP_APPLY3
    }
  } else {
    switch (code) {
#define ZP_INTEGER_FUNCTOR(op, functor) \
  case static_cast<int>(OpKind::op): {  \
    return functor::apply(a, b, c);     \
  }
#include "kernels/scalar/functors.def"
    }
  }
  return T(0);
}

template <typename T>
__device__ void fill_slot(const Program& p, const Instruction& step, int64_t first, int width, T* to) {
  const int operand = step.a + 1;
  const Operand& from = p.operands[operand];
  for (int k = 0; k < width; ++k) {
    int64_t at = first + k;
    if (!p.dense) {
      int64_t rest = at;
      at = 0;
      for (int d = p.space.rank - 1; d >= 0; --d) {
        at += rest % p.space.dims[d] * p.space.strides[operand][d];
        rest /= p.space.dims[d];
      }
    }
    to[k] = load_as<T>(from.data, from.dtype, at);
  }
}

template <typename T>
__global__ void run_chain(int64_t groups, const __grid_constant__ Program p) {
  for_items(groups, [&](int64_t group) {
    T slots[kSlots][kWidth];
    const int64_t first = group * kWidth, left = p.space.count - first;
    const int width = static_cast<int>(left < kWidth ? left : kWidth);
    int last = 0;
    for (int i = 0; i < p.count; ++i) {
      const Instruction& step = p.instructions[i];
      T* to = slots[step.to];
      last = step.to;
      if (step.code == kLoad) {
        fill_slot(p, step, first, width, to);
      } else if (step.code == kConstant) {
        for (int k = 0; k < kWidth; ++k) to[k] = static_cast<T>(p.constants[step.a]);
      } else {
        for (int k = 0; k < width; ++k) to[k] = apply<T>(step.code, slots[step.a][k], slots[step.b][k], slots[step.c][k]);
      }
    }
    int64_t at[1];
    for (int k = 0; k < width; ++k) {
      p.space.offsets(first + k, 1, at);
      store_from<T>(p.operands[0].data, p.operands[0].dtype, at[0], slots[last][k]);
    }
  });
}

// Gives each register of a chain a slot for as long as it is read: operands and constants are filled just before their first use.
class Allocator {
 public:
  Allocator(Program& program, int registers) : program_(program), slot_(registers, -1), last_use_(registers, -1) {}
  void note_use(int r, int instruction) {
    if (r >= 0) last_use_[r] = instruction;
  }
  bool filled(int r) const { return slot_[r] >= 0; }
  int16_t slot(int r) const { return static_cast<int16_t>(r < 0 ? 0 : slot_[r]); }
  int16_t take(int r) {
    int k = 0;
    while (k < kSlots && taken_[k]) ++k;
    if (k == kSlots) chain_too_long();
    taken_[k] = true;
    slot_[r] = k;
    return static_cast<int16_t>(k);
  }
  // After instruction i: slots of registers that nothing reads any more are free.
  void release(int r, int instruction) {
    if (r >= 0 && last_use_[r] == instruction) taken_[slot_[r]] = false;
  }
  void append(Instruction step) {
    if (program_.count == kInstructions) chain_too_long();
    program_.instructions[program_.count++] = step;
  }

 private:
  Program& program_;
  std::vector<int> slot_, last_use_;
  bool taken_[kSlots] = {};
};

void assemble(const ElementwiseCode& code, Program& p) {
  const int operands = p.operand_count, constants = static_cast<int>(code.constants.size()),
            count = static_cast<int>(code.instructions.size());
  if (operands > kOperands || constants > kConstants || count > kInstructions) chain_too_long();
  for (int i = 0; i < constants; ++i) p.constants[i] = code.constants[i];
  Allocator slots(p, operands + constants + count);
  for (int i = 0; i < count; ++i)
    for (int r : {code.instructions[i].a, code.instructions[i].b, code.instructions[i].c}) slots.note_use(r, i);
  for (int i = 0; i < count; ++i) {
    const ElementwiseInstruction& from = code.instructions[i];
    for (int r : {from.a, from.b, from.c}) {
      if (r < 0 || slots.filled(r)) continue;
      const bool operand = r < operands;
      slots.append({operand ? kLoad : kConstant, static_cast<int16_t>(operand ? r : r - operands), 0, 0, slots.take(r)});
    }
    const auto op = static_cast<int16_t>((from.approximate ? kTanh : 0) + static_cast<int>(from.op));
    const int16_t a = slots.slot(from.a), b = slots.slot(from.b), c = slots.slot(from.c);
    for (int r : {from.a, from.b, from.c}) slots.release(r, i);
    slots.append({op, a, b, c, slots.take(operands + constants + i)});
  }
}

template <typename T>
void run(const KernelArgs& args, const ElementwiseCode& code) {
  Program p;
  const TensorView& y = args.outputs[0];
  const TensorView* views[kOperands + 1] = {&y};
  if (args.input_count > kOperands) chain_too_long();
  p.operand_count = args.input_count;
  for (int i = 0; i < args.input_count; ++i) views[i + 1] = &args.inputs[i];
  for (int i = 0; i <= args.input_count; ++i) p.operands[i] = {views[i]->data, views[i]->dtype};
  p.space = make_space<kOperands + 1>(y, views, args.input_count + 1);
  p.dense = true;
  for (int i = 0; i <= args.input_count; ++i) p.dense = p.dense && p.space.dense(i);
  assemble(code, p);
  launch_over(args, (p.space.count + kWidth - 1) / kWidth, run_chain<T>, p);
}

ElementwiseCode single(OpKind op, const KernelArgs& args) {
  const bool tanh = args.attributes != nullptr && args.attributes->get_int(Attr::approximate, 0) != 0;
  return {{}, {{op, 0, args.input_count > 1 ? 1 : -1, args.input_count > 2 ? 2 : -1, tanh ? 1 : 0}}};
}

void require_integer_form(OpKind op) {
  switch (op) {
#define ZP_INTEGER_FUNCTOR(name, functor) case OpKind::name:
#include "kernels/scalar/functors.def"
    return;
    default: not_for_integers(op);
  }
}

// Computed in the type of the operands: 16 bits in float, integers in 64 bits with sign, which holds all but uint64; boolean as float.
void run_single(OpKind op, const KernelArgs& args) {
  const DType dtype = args.inputs[args.input_count - 1].dtype;  // where: not the condition
  const ElementwiseCode code = single(op, args);
  if (dtype == DType::f64) return run<double>(args, code);
  if (is_floating(dtype) || dtype == DType::boolean) return run<float>(args, code);
  require_integer_form(op);
  if (dtype == DType::u64) return run<uint64_t>(args, code);
  run<int64_t>(args, code);
}

}  // namespace

void elementwise_kernel(const KernelArgs& args) {
  if (args.outputs[0].dtype == DType::f64) return run<double>(args, *args.chain);
  run<float>(args, *args.chain);
}

#define ZP_OP(name)
#define ZP_KERNEL_OP(name)
#define ZP_SINGLE(name) \
  void name##_kernel(const KernelArgs& args) { run_single(OpKind::name, args); }
#define ZP_UNARY_OP(name) ZP_SINGLE(name)
#define ZP_BINARY_OP(name) ZP_SINGLE(name)
#define ZP_TERNARY_OP(name) ZP_SINGLE(name)
#include "graph/ops/ops.def"
#undef ZP_SINGLE
#undef ZP_OP

}  // namespace zeroplan::kernels_cuda
