// Ties every ZP_KERNEL_OP of ops.def to its function `<op>_kernel`; one that is missing does not link.
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "graph/ops/halves.h"
#include "kernels/kernel.h"

namespace zeroplan {

#define ZP_OP(name)
#define ZP_KERNEL_OP(name) void name##_kernel(const KernelArgs&);
namespace kernels_baseline {
#include "graph/ops/ops.def"
void run_widened(const KernelArgs&, Kernel);
}  // namespace kernels_baseline
#define ZP_KERNEL_OP(name) void name##_kernel(const KernelArgs&);
namespace kernels_avx2 {
#include "graph/ops/ops.def"
void run_widened(const KernelArgs&, Kernel);
}  // namespace kernels_avx2
#define ZP_KERNEL_OP(name) void name##_kernel(const KernelArgs&);
namespace kernels_avx512 {
#include "graph/ops/ops.def"
void run_widened(const KernelArgs&, Kernel);
}  // namespace kernels_avx512
#undef ZP_OP

namespace {

bool has_halves(const TensorView* views, int count) {
  return std::any_of(views, views + count, [](const TensorView& view) { return view.data != nullptr && is_half(view.dtype); });
}

// What the table holds of a kernel that knows no 16-bit operands.
template <Kernel kKernel, void (*kWidened)(const KernelArgs&, Kernel)>
void run_any(const KernelArgs& args) {
  if (has_halves(args.inputs, args.input_count) || has_halves(args.outputs, args.output_count)) return kWidened(args, kKernel);
  kKernel(args);
}

template <OpKind kOp, Kernel kKernel, void (*kWidened)(const KernelArgs&, Kernel)>
constexpr Kernel kListed = reads_halves(kOp) ? kKernel : run_any<kKernel, kWidened>;

#define ZP_OP(name) nullptr,
#define ZP_KERNEL_OP(name) kListed<OpKind::name, kernels_baseline::name##_kernel, kernels_baseline::run_widened>,
constexpr Kernel kBaseline[] = {
#include "graph/ops/ops.def"
};
#define ZP_KERNEL_OP(name) kListed<OpKind::name, kernels_avx2::name##_kernel, kernels_avx2::run_widened>,
constexpr Kernel kAvx2[] = {
#include "graph/ops/ops.def"
};
#define ZP_KERNEL_OP(name) kListed<OpKind::name, kernels_avx512::name##_kernel, kernels_avx512::run_widened>,
constexpr Kernel kAvx512[] = {
#include "graph/ops/ops.def"
};
#undef ZP_OP

struct InstructionSet {
  std::string_view name;
  const Kernel* kernels;
};

bool runs_here(std::string_view name) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (name == "avx2") return avx2;
  if (name != "avx512") return name == "baseline";
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

constexpr InstructionSet kSets[] = {{"avx512", kAvx512}, {"avx2", kAvx2}, {"baseline", kBaseline}};

const InstructionSet& chosen_set() {
  static const InstructionSet& chosen =
      *std::find_if(std::begin(kSets), std::end(kSets), [](const InstructionSet& set) { return runs_here(set.name); });
  return chosen;
}

}  // namespace

Kernel cpu_kernel(OpKind op) { return chosen_set().kernels[static_cast<int>(op)]; }

Kernel cpu_kernel(OpKind op, std::string_view instruction_set) {
  for (const InstructionSet& set : kSets) {
    if (set.name == instruction_set) return runs_here(set.name) ? set.kernels[static_cast<int>(op)] : nullptr;
  }
  throw Error(fmt::format("no CPU kernels for the instruction set '{}'; there are avx512, avx2 and baseline", instruction_set));
}

const char* cpu_instruction_set() { return chosen_set().name.data(); }

void prepare_cpu_kernels() {
  // Its own threads would add up bits in another order; a product of doubles runs on the calling thread.
  openblas_set_num_threads(1);
}

}  // namespace zeroplan
