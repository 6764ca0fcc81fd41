// Placeholders while the branches are joined: delete a line together with the kernel that replaces it.
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

void random_uniform_kernel(const KernelArgs&) {}

void dropout_kernel(const KernelArgs&) {}

void dropout_grad_kernel(const KernelArgs&) {}

void record_statistics_kernel(const KernelArgs&) {}

void fold_statistics_kernel(const KernelArgs&) {}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
