// Every kernel against the op's reference evaluator, on each device of the program: storage types, layouts, in-place pairs.
#include <gtest/gtest.h>

#include "tests/kernels/judge.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

class KernelCase : public testing::TestWithParam<OpCase> {
 protected:
  // check(device, case) in each precision on each device.
  template <typename Check>
  void everywhere(const Check& check) {
    for (const DType precision : kCasePrecisions) {
      const CaseGraph built = build_case(GetParam(), precision, kCaseSeed);
      for (const TestDevice& device : test_devices()) {
        SCOPED_TRACE(device.name + " " + std::string(dtype_name(precision)));
        check(device, built);
      }
    }
  }
};

TEST_P(KernelCase, MatchesReference) {
  everywhere([&](const TestDevice& device, const CaseGraph& built) {
    RunOptions options{device};
    expect_all_close(run_case(built, options), reference_outputs(built), tolerance_of(built));
  });
}

TEST_P(KernelCase, TakesEveryLayoutThatIsAccepted) {
  everywhere([&](const TestDevice& device, const CaseGraph& built) {
    const std::vector<HostTensor> want = reference_outputs(built);
    for (const MemoryLayout layout : {MemoryLayout::reversed_axes, MemoryLayout::padded_rows, MemoryLayout::every_other}) {
      SCOPED_TRACE("layout " + std::to_string(static_cast<int>(layout)));
      RunOptions options{device, 1, layout};
      const std::vector<HostTensor> got = run_case(built, options);
      if (options.strided_inputs > 0) expect_all_close(got, want, tolerance_of(built));
    }
  });
}

TEST_P(KernelCase, InPlaceGivesTheSameBits) {
  everywhere([&](const TestDevice& device, const CaseGraph& built) {
    RunOptions plain{device};
    const std::vector<HostTensor> apart = run_case(built, plain);
    for (const auto& [output, input] : op_def(GetParam().op).in_place) {
      if (input >= static_cast<int>(built.node.inputs.size()) || built.node.inputs[input] == kNone) continue;
      const Value &from = built.graph.value(built.node.inputs[input]), &to = built.graph.value(built.node.outputs[output]);
      if (from.shape != to.shape || from.dtype != to.dtype) continue;
      SCOPED_TRACE("output " + std::to_string(output) + " on input " + std::to_string(input));
      RunOptions options{device, 1, MemoryLayout::contiguous, std::pair{output, input}};
      expect_same_bits(run_case(built, options), apart);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, KernelCase, testing::ValuesIn(kernel_cases()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
