// Placeholders while the branches are joined: delete a line together with the kernel that replaces it.
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
