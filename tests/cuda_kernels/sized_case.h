#pragma once
// Cases of sizes that cross a kernel's blocks, tiles and chunks.
#include "tests/kernels/runner.h"

namespace zeroplan {

// The op's CUDA kernel against its reference evaluator, in every precision that the case's types follow, contiguous and in every layout
// that the op accepts.
void check_on_device(const OpCase& op_case);
// What the kernel writes for the case.
std::vector<HostTensor> device_outputs(const CaseGraph& built, MemoryLayout layout = MemoryLayout::contiguous);

}  // namespace zeroplan
