// Kernels that compute in float32 on 16-bit operands: each is widened into the workspace, and each result rounded once.
#include <algorithm>

#include "base/error.h"
#include "graph/ops/halves.h"
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int kMostOperands = 16;

void convert(const TensorView& from, const TensorView& to, int threads) {
  KernelArgs args;
  args.inputs = &from;
  args.input_count = 1;
  args.outputs = &to;
  args.output_count = 1;
  args.threads = threads;
  cast_kernel(args);
}

// Strides that keep the order of the axes in memory and leave no gap; axes that are broadcast stay so.
void close_gaps(TensorView& view) {
  int order[kMaxRank];  // by stride; sorted here: a library's template would be emitted for every instruction set
  for (int i = 0; i < view.rank; ++i) {
    int at = i;
    for (; at > 0 && view.strides[order[at - 1]] > view.strides[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t step = 1;
  for (int i = 0; i < view.rank; ++i) {
    int64_t& stride = view.strides[order[i]];
    if (stride == 0) continue;
    stride = step;
    step *= view.dims[order[i]];
  }
}

// Each element once.
TensorView without_repeats(TensorView view) {
  for (int i = 0; i < view.rank; ++i)
    if (view.strides[i] == 0) view.dims[i] = 1;
  return view;
}

// Hands out the copies, and at last the kernel's own scratch.
class Workspace {
 public:
  explicit Workspace(const KernelArgs& args) : at_(static_cast<char*>(args.workspace)), left_(args.workspace_bytes) {}
  TensorView copy_of(TensorView view) {
    const int64_t bytes = widened_bytes(view.elements());
    check(bytes <= left_, "the workspace holds the widened operands");
    view.data = at_;
    view.dtype = DType::f32;
    close_gaps(view);
    at_ += bytes;
    left_ -= bytes;
    return view;
  }
  void hand_over(KernelArgs& args) const {
    args.workspace = at_;
    args.workspace_bytes = left_;
  }

 private:
  char* at_;
  int64_t left_;
};

bool is_widened(const TensorView& view) { return view.data != nullptr && is_half(view.dtype); }

}  // namespace

void run_widened(const KernelArgs& args, Kernel kernel) {
  check(args.input_count <= kMostOperands && args.output_count <= kMostOperands, "a kernel has few operands");
  TensorView inputs[kMostOperands], outputs[kMostOperands];
  Workspace workspace(args);
  for (int i = 0; i < args.input_count; ++i) {
    inputs[i] = args.inputs[i];
    if (!is_widened(inputs[i])) continue;
    inputs[i] = workspace.copy_of(inputs[i]);
    convert(without_repeats(args.inputs[i]), without_repeats(inputs[i]), args.threads);
  }
  for (int i = 0; i < args.output_count; ++i)
    outputs[i] = is_widened(args.outputs[i]) ? workspace.copy_of(args.outputs[i]) : args.outputs[i];
  KernelArgs wide = args;
  wide.inputs = inputs;
  wide.outputs = outputs;
  workspace.hand_over(wide);
  kernel(wide);
  for (int i = 0; i < args.output_count; ++i)
    if (is_widened(args.outputs[i])) convert(outputs[i], args.outputs[i], args.threads);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
