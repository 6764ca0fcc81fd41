#include "tests/cuda_kernels/sized_case.h"

#include <gtest/gtest.h>

#include "tests/kernels/judge.h"

namespace zeroplan {

namespace {

constexpr uint64_t kSeed = 11;

}  // namespace

std::vector<HostTensor> device_outputs(const CaseGraph& built, MemoryLayout layout) {
  RunOptions options{test_devices()[0], 1, layout};
  return run_case(built, options);
}

void check_on_device(const OpCase& op_case) {
  SCOPED_TRACE(op_case.name);
  for (const DType precision : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    SCOPED_TRACE(dtype_name(precision));
    const CaseGraph built = build_case(op_case, precision, kSeed);
    const std::vector<HostTensor> want = reference_outputs(built);
    for (const MemoryLayout layout :
         {MemoryLayout::contiguous, MemoryLayout::reversed_axes, MemoryLayout::padded_rows, MemoryLayout::every_other}) {
      if (layout != MemoryLayout::contiguous && op_def(op_case.op).accepts == nullptr) break;
      SCOPED_TRACE("layout " + std::to_string(static_cast<int>(layout)));
      RunOptions options{test_devices()[0], 1, layout};
      const std::vector<HostTensor> got = run_case(built, options);
      if (layout == MemoryLayout::contiguous || options.strided_inputs > 0)
        expect_all_close(got, want, tolerance(op_case.op, want[0].dtype() == DType::f64 ? DType::f64 : DType::f32));
    }
  }
}

}  // namespace zeroplan
