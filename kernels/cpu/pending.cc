// Placeholders while the branches are joined: delete a line together with the kernel that replaces it.
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

void ceil_kernel(const KernelArgs&) {}

void floor_kernel(const KernelArgs&) {}

void round_kernel(const KernelArgs&) {}

void tan_kernel(const KernelArgs&) {}

void asin_kernel(const KernelArgs&) {}

void acos_kernel(const KernelArgs&) {}

void atan_kernel(const KernelArgs&) {}

void sinh_kernel(const KernelArgs&) {}

void cosh_kernel(const KernelArgs&) {}

void asinh_kernel(const KernelArgs&) {}

void acosh_kernel(const KernelArgs&) {}

void atanh_kernel(const KernelArgs&) {}

void modulo_kernel(const KernelArgs&) {}

void remainder_kernel(const KernelArgs&) {}

void shift_left_kernel(const KernelArgs&) {}

void shift_right_kernel(const KernelArgs&) {}

void bit_and_kernel(const KernelArgs&) {}

void bit_or_kernel(const KernelArgs&) {}

void bit_xor_kernel(const KernelArgs&) {}

void reduce_prod_kernel(const KernelArgs&) {}

void arg_max_kernel(const KernelArgs&) {}

void cumsum_kernel(const KernelArgs&) {}

void top_k_kernel(const KernelArgs&) {}

void scatter_kernel(const KernelArgs&) {}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
