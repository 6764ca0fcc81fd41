// layer_norm, rms_norm and their gradients.
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

int64_t columns_of(const TensorView& x) { return x.dims[x.rank - 1]; }
int64_t rows_of(const TensorView& x) { return columns_of(x) > 0 ? count_elements(x) / columns_of(x) : 0; }
template <typename T>
const T* input(const KernelArgs& args, int i) {
  return i < args.input_count ? static_cast<const T*>(args.inputs[i].data) : nullptr;
}
template <typename T>
T* output(const KernelArgs& args, int i) {
  return static_cast<T*>(args.outputs[i].data);
}

template <typename T, bool kCentered>
void forward(const KernelArgs& args, const NormForward<T>& n) {
  parallel_ranges(args.threads, rows_of(args.inputs[0]), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) norm_row<T, kCentered>(n, row);
  });
}

template <typename T, bool kCentered>
void backward(const KernelArgs& args, const NormBackward<T>& n) {
  parallel_for(args.threads, kNormGradChunks, [&](int64_t chunk) { norm_grad_chunk<T, kCentered>(n, chunk); });
  norm_grad_fold(n);
}

}  // namespace

void layer_norm_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    forward<T, true>(args, {input<T>(args, 0), input<T>(args, 1), input<T>(args, 2), output<T>(args, 0), output<T>(args, 1),
                            output<T>(args, 2), columns_of(args.inputs[0]), args.attributes->get_double(Attr::epsilon)});
  });
}

void rms_norm_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    forward<T, false>(args, {input<T>(args, 0), input<T>(args, 1), nullptr, output<T>(args, 0), nullptr, output<T>(args, 1),
                             columns_of(args.inputs[0]), args.attributes->get_double(Attr::epsilon)});
  });
}

void layer_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    backward<T, true>(args, {input<T>(args, 0), input<T>(args, 1), input<T>(args, 2), input<T>(args, 3), input<T>(args, 4),
                             output<T>(args, 0), output<T>(args, 1), output<T>(args, 2), static_cast<double*>(args.workspace),
                             rows_of(args.inputs[0]), columns_of(args.inputs[0])});
  });
}

void rms_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    backward<T, false>(
        args, {input<T>(args, 0), input<T>(args, 1), input<T>(args, 2), nullptr, input<T>(args, 3), output<T>(args, 0), output<T>(args, 1),
               nullptr, static_cast<double*>(args.workspace), rows_of(args.inputs[0]), columns_of(args.inputs[0])});
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
