#include "kernels/cpu/elementwise_engine.h"

#include <algorithm>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/parallel.h"
#include "kernels/failures.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

enum class Access : uint8_t { direct, fetched, constant };

// Where each register lives, decided once per call.
template <typename T>
struct Layout {
  Space space;  // operand 0 is y, operand i + 1 the chain's operand i
  Access access[kMaxSpaceOperands];
  int scratch[kMaxChainRegisters];  // block of scratch, -1: read or written in place
  int64_t rows = 1, piece = 0;      // a block is `rows` outer positions of `piece` inner elements; one of the two is 1 or whole
  int64_t pieces = 1, blocks = 0;
};

template <typename T>
void cut_blocks(Layout<T>& plan) {
  const int64_t inner = plan.space.inner(), outer = plan.space.outer();
  if (inner >= kChainBlock / 2 || outer == 1) {
    plan.piece = std::min(inner, kChainBlock);
    plan.pieces = (inner + plan.piece - 1) / plan.piece;
    plan.blocks = outer * plan.pieces;
  } else {
    plan.piece = inner;
    plan.rows = std::min(outer, kChainBlock / inner);
    plan.blocks = (outer + plan.rows - 1) / plan.rows;
  }
}

template <typename T>
Access access_of(const Layout<T>& plan, int operand, DType dtype) {
  const Space& s = plan.space;
  if (operand > 0 && s.constant(operand)) return Access::constant;
  const bool run = plan.rows == 1 && (s.inner_stride(operand) == 1 || plan.piece == 1);
  return is_type<T>(dtype) && run ? Access::direct : Access::fetched;
}

// Gives each register that needs one a block of scratch, reusing those whose register is read no more.
template <typename T>
void assign_scratch(const Chain<T>& chain, Layout<T>& plan) {
  int last_use[kMaxChainRegisters];
  bool taken[kMaxChainScratch] = {};
  for (int r = 0; r < chain.registers(); ++r) last_use[r] = -1;
  for (int i = 0; i < chain.instruction_count; ++i) {
    for (int r : chain.instructions[i].operands)
      if (r >= 0) last_use[r] = i;
  }
  const auto take = [&](int r) {
    int k = 0;
    while (k < kMaxChainScratch && taken[k]) ++k;
    if (k == kMaxChainScratch) chain_too_long();
    taken[k] = true;
    plan.scratch[r] = k;
  };
  for (int r = 0; r < chain.first_instruction(); ++r) {
    plan.scratch[r] = -1;
    if (r >= chain.operand_count || plan.access[r + 1] != Access::direct) take(r);
  }
  for (int i = 0; i < chain.instruction_count; ++i) {
    for (int r : chain.instructions[i].operands) {  // block functions may write over an operand
      if (r >= chain.first_instruction() && last_use[r] == i && plan.scratch[r] >= 0) taken[plan.scratch[r]] = false;
    }
    const int result = chain.first_instruction() + i;
    plan.scratch[result] = -1;
    if (i + 1 < chain.instruction_count || plan.access[0] != Access::direct) take(result);
  }
}

template <typename T>
struct BlockRunner {
  const Chain<T>& chain;
  const Layout<T>& plan;
  const TensorView* operands;
  const TensorView& y;
  const T* registers[kMaxChainRegisters];
  alignas(64) T scratch[kMaxChainScratch][kChainBlock];

  // Leaves the scratch as it is: zeroing it would cost more than a short call.
  BlockRunner(const Chain<T>& c, const Layout<T>& p, const TensorView* in, const TensorView& out)
      : chain(c), plan(p), operands(in), y(out) {}

  // Registers that hold one number for the whole call.
  void fill_constants() {
    for (int r = 0; r < chain.first_instruction(); ++r) {
      if (plan.scratch[r] < 0) continue;
      T* to = scratch[plan.scratch[r]];
      registers[r] = to;
      if (r >= chain.operand_count)
        std::fill_n(to, kChainBlock, static_cast<T>(chain.constants[r - chain.operand_count]));
      else if (plan.access[r + 1] == Access::constant)
        fetch<T>(operands[r], 0, 0, kChainBlock, to);
    }
  }

  void run(int64_t block) {
    const int64_t first_row = plan.rows > 1 ? block * plan.rows : block / plan.pieces;
    const int64_t start = plan.rows > 1 ? 0 : block % plan.pieces * plan.piece;
    const int64_t count = std::min(plan.piece, plan.space.inner() - start);
    const int64_t rows = std::min(plan.rows, plan.space.outer() - first_row);
    read_operands(first_row, rows, start, count);
    T* out = run_instructions(first_row, rows, start, count);
    if (plan.access[0] != Access::direct) write_back(out, first_row, rows, start, count);
  }

  void read_operands(int64_t first_row, int64_t rows, int64_t start, int64_t count) {
    OuterIndex index(plan.space, first_row);
    for (int64_t row = 0; row < rows; ++row, index.next()) {
      for (int o = 0; o < chain.operand_count; ++o) {
        if (plan.access[o + 1] == Access::constant) continue;
        const int64_t stride = plan.space.inner_stride(o + 1), offset = index.offset(o + 1) + start * stride;
        if (plan.access[o + 1] == Access::direct)
          registers[o] = operands[o].template as<T>() + offset;
        else
          fetch<T>(operands[o], offset, stride, count, scratch[plan.scratch[o]] + row * count);
      }
    }
  }

  T* run_instructions(int64_t first_row, int64_t rows, int64_t start, int64_t count) {
    T* to = nullptr;
    for (int i = 0; i < chain.instruction_count; ++i) {
      const auto& step = chain.instructions[i];
      const int result = chain.first_instruction() + i;
      if (plan.scratch[result] >= 0)
        to = scratch[plan.scratch[result]];
      else
        to = y.as<T>() + OuterIndex(plan.space, first_row).offset(0) + start * plan.space.inner_stride(0);
      const auto at = [&](int r) { return r >= 0 ? registers[r] : nullptr; };
      step.run(at(step.operands[0]), at(step.operands[1]), at(step.operands[2]), to, rows * count);
      registers[result] = to;
    }
    return to;
  }

  void write_back(const T* from, int64_t first_row, int64_t rows, int64_t start, int64_t count) {
    OuterIndex index(plan.space, first_row);
    const int64_t stride = plan.space.inner_stride(0);
    for (int64_t row = 0; row < rows; ++row, index.next()) put<T>(from + row * count, count, y, index.offset(0) + start * stride, stride);
  }
};

}  // namespace

template <typename T>
void run_chain(const Chain<T>& chain, const TensorView* operands, const TensorView& y, int threads) {
  if (count_elements(y) == 0) return;
  const TensorView* views[kMaxSpaceOperands] = {&y};
  for (int o = 0; o < chain.operand_count; ++o) views[o + 1] = &operands[o];
  Layout<T> plan;
  plan.space = make_space(y, views, chain.operand_count + 1);
  cut_blocks(plan);
  plan.access[0] = access_of(plan, 0, y.dtype);
  for (int o = 0; o < chain.operand_count; ++o) plan.access[o + 1] = access_of(plan, o + 1, operands[o].dtype);
  assign_scratch(chain, plan);
  parallel_ranges(threads, plan.blocks, 1, [&](int64_t begin, int64_t end) {
    BlockRunner<T> runner(chain, plan, operands, y);
    runner.fill_constants();
    for (int64_t block = begin; block < end; ++block) runner.run(block);
  });
}
template void run_chain<float>(const Chain<float>&, const TensorView*, const TensorView&, int);
template void run_chain<double>(const Chain<double>&, const TensorView*, const TensorView&, int);
template void run_chain<int64_t>(const Chain<int64_t>&, const TensorView*, const TensorView&, int);
template void run_chain<uint64_t>(const Chain<uint64_t>&, const TensorView*, const TensorView&, int);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
