// Every CUDA kernel against the op's reference evaluator: storage types, layouts, in-place pairs.
#include <gtest/gtest.h>

#include "tests/cuda_kernels/device_call.h"
#include "tests/kernels/judge.h"

namespace zeroplan {
namespace {

constexpr uint64_t kSeed = 7;
constexpr DType kPrecisions[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

RunOptions on_device(MemoryLayout layout = MemoryLayout::contiguous, std::optional<std::pair<int, int>> in_place = {}) {
  RunOptions options;
  options.layout = layout;
  options.in_place = in_place;
  options.device = DeviceKind::cuda;
  options.run = [](OpKind op, KernelArgs& args, auto memory) { run_on_device(op, args, memory); };
  return options;
}

class CudaCase : public testing::TestWithParam<OpCase> {
 protected:
  double tolerance_of(const CaseGraph& built) const {
    return tolerance(GetParam().op, built.graph.value(built.node.outputs[0]).dtype == DType::f64 ? DType::f64 : DType::f32);
  }
};

TEST_P(CudaCase, MatchesReference) {
  for (const DType precision : kPrecisions) {
    SCOPED_TRACE(dtype_name(precision));
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    RunOptions options = on_device();
    expect_all_close(run_case(built, options), reference_outputs(built), tolerance_of(built));
  }
}

TEST_P(CudaCase, TakesEveryLayoutThatIsAccepted) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    const std::vector<HostTensor> want = reference_outputs(built);
    for (const MemoryLayout layout : {MemoryLayout::reversed_axes, MemoryLayout::padded_rows, MemoryLayout::every_other}) {
      SCOPED_TRACE("layout " + std::to_string(static_cast<int>(layout)));
      RunOptions options = on_device(layout);
      const std::vector<HostTensor> got = run_case(built, options);
      if (options.strided_inputs > 0) expect_all_close(got, want, tolerance_of(built));
    }
  }
}

TEST_P(CudaCase, InPlaceGivesTheSameBits) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    RunOptions plain = on_device();
    const std::vector<HostTensor> apart = run_case(built, plain);
    for (const auto& [output, input] : op_def(GetParam().op).in_place) {
      if (input >= static_cast<int>(built.node.inputs.size()) || built.node.inputs[input] == kNone) continue;
      const Value &from = built.graph.value(built.node.inputs[input]), &to = built.graph.value(built.node.outputs[output]);
      if (from.shape != to.shape || from.dtype != to.dtype) continue;
      SCOPED_TRACE("output " + std::to_string(output) + " on input " + std::to_string(input));
      RunOptions options = on_device(MemoryLayout::contiguous, std::pair{output, input});
      expect_same_bits(run_case(built, options), apart);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCase, testing::ValuesIn(kernel_cases()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
