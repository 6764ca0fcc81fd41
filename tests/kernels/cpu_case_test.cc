// What op cases show of the CPU kernels alone: how far instruction sets may differ, and that threads change no bit.
#include <gtest/gtest.h>

#include "tests/kernels/judge.h"
#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

class CpuCase : public testing::TestWithParam<OpCase> {
 protected:
  std::vector<HostTensor> run(const CaseGraph& built, const std::string& set, int threads = 1) {
    RunOptions options{cpu_device(set), threads};
    return run_case(built, options);
  }
};

TEST_P(CpuCase, InstructionSetsAgree) {
  for (const DType precision : kCasePrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kCaseSeed);
    const bool wide = tolerance_of(built) > 2e-6;
    const std::vector<HostTensor> first = run(built, "baseline");
    for (const std::string& set : instruction_sets()) {
      SCOPED_TRACE(set + " " + std::string(dtype_name(precision)));
      expect_all_close(run(built, set), first, precision == DType::f64 ? 1e-13 : wide ? 4e-6 : 1e-6);
    }
  }
}

TEST_P(CpuCase, ThreadsGiveTheSameBits) {
  for (const DType precision : kCasePrecisions) {
    const CaseGraph built = build_case(GetParam(), precision, kCaseSeed);
    const std::vector<HostTensor> one = run(built, cpu_instruction_set()), two = run(built, cpu_instruction_set(), 2);
    // Products are the library's: equal bits hold for an equal number of threads.
    if (GetParam().op == OpKind::matmul)
      expect_all_close(two, one, 1e-6);
    else
      expect_same_bits(two, one);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuCase, testing::ValuesIn(kernel_cases()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
