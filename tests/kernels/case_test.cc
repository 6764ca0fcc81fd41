// Every kernel against the op's reference evaluator: all instruction sets, layouts, in-place pairs and thread counts.
#include <gtest/gtest.h>

#include "tests/kernels/judge.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

constexpr uint64_t kSeed = 7;
constexpr DType kPrecisions[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

class KernelCase : public testing::TestWithParam<OpCase> {
 protected:
  std::vector<HostTensor> run(const CaseGraph& built, RunOptions options) { return run_case(built, options); }
  double tolerance_of(const CaseGraph& built) const {
    return tolerance(GetParam().op, built.graph.value(built.node.outputs[0]).dtype == DType::f64 ? DType::f64 : DType::f32);
  }
};

TEST_P(KernelCase, MatchesReferenceOnEveryInstructionSet) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    const std::vector<HostTensor> want = reference_outputs(built);
    std::vector<HostTensor> first;
    for (const std::string& set : instruction_sets()) {
      SCOPED_TRACE(set + " " + std::string(dtype_name(precision)));
      const std::vector<HostTensor> got = run(built, {set});
      expect_all_close(got, want, tolerance_of(built));
      if (first.empty()) first = got;
      expect_all_close(got, first, precision == DType::f64 ? 1e-13 : 1e-6 * (tolerance_of(built) > 2e-6 ? 4 : 1));
    }
  }
}

TEST_P(KernelCase, TakesEveryLayoutThatIsAccepted) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    const std::vector<HostTensor> want = reference_outputs(built);
    for (const MemoryLayout layout : {MemoryLayout::reversed_axes, MemoryLayout::padded_rows, MemoryLayout::every_other}) {
      RunOptions options{cpu_instruction_set(), 1, layout};
      SCOPED_TRACE("layout " + std::to_string(static_cast<int>(layout)));
      const std::vector<HostTensor> got = run_case(built, options);
      if (options.strided_inputs > 0) expect_all_close(got, want, tolerance_of(built));
    }
  }
}

TEST_P(KernelCase, InPlaceGivesTheSameBits) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    const std::vector<HostTensor> apart = run(built, {cpu_instruction_set()});
    for (const auto& [output, input] : op_def(GetParam().op).in_place) {
      if (input >= static_cast<int>(built.node.inputs.size()) || built.node.inputs[input] == kNone) continue;
      const Value &from = built.graph.value(built.node.inputs[input]), &to = built.graph.value(built.node.outputs[output]);
      if (from.shape != to.shape || from.dtype != to.dtype) continue;
      SCOPED_TRACE("output " + std::to_string(output) + " on input " + std::to_string(input));
      expect_same_bits(run(built, {cpu_instruction_set(), 1, MemoryLayout::contiguous, std::pair{output, input}}), apart);
    }
  }
}

TEST_P(KernelCase, ThreadsGiveTheSameBits) {
  for (const DType precision : kPrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kSeed);
    const std::vector<HostTensor> one = run(built, {cpu_instruction_set(), 1}), two = run(built, {cpu_instruction_set(), 2});
    // Products are the library's: equal bits hold for an equal number of threads.
    if (GetParam().op == OpKind::matmul)
      expect_all_close(two, one, 1e-6);
    else
      expect_same_bits(two, one);
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelCase, testing::ValuesIn(kernel_cases()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
