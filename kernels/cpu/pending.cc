// Placeholders while the branches are joined: delete a line together with the kernel that replaces it.
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

void conv_kernel(const KernelArgs&) {}

void conv_grad_input_kernel(const KernelArgs&) {}

void conv_grad_weight_kernel(const KernelArgs&) {}

void max_pool_kernel(const KernelArgs&) {}

void average_pool_kernel(const KernelArgs&) {}

void average_pool_grad_kernel(const KernelArgs&) {}

void batch_norm_kernel(const KernelArgs&) {}

void batch_norm_grad_kernel(const KernelArgs&) {}

void random_uniform_kernel(const KernelArgs&) {}

void dropout_kernel(const KernelArgs&) {}

void dropout_grad_kernel(const KernelArgs&) {}

void record_statistics_kernel(const KernelArgs&) {}

void fold_statistics_kernel(const KernelArgs&) {}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
