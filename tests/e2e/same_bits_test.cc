// One set of weights, whatever the ranks, stage, units and prefetch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/golden.h"

namespace zeroplan {
namespace {

std::string exported_bytes(const CompileOptions& options, const Golden& golden) {
  const TemporaryFolder folder;
  const GoldenRun run = run_golden("gpt2_nano_dynamo", golden, options);
  export_trained(*run.executor, folder.file("trained.onnx"));
  return read_file(folder.file("trained.onnx"));
}

class SameBitsTest : public testing::Test {
 protected:
  SameBitsTest() : golden_(read_golden("gpt2_nano_dynamo", "golden")) {
    golden_.run.clip = 0.5;
    options_ = golden_.compile;
    options_.micro_batches = 8;
    reference_ = exported_bytes(options_, golden_);
  }
  void expect_same(const CompileOptions& options, const std::string& what) {
    EXPECT_TRUE(exported_bytes(options, golden_) == reference_) << what;
  }

  Golden golden_;
  CompileOptions options_;
  std::string reference_;
};

TEST_F(SameBitsTest, RanksAndStages) {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (int stage = 0; stage <= 3; ++stage) {
      options_.ranks = ranks;
      options_.stage = stage;
      expect_same(options_, fmt::format("ranks {} stage {}", ranks, stage));
    }
}

TEST_F(SameBitsTest, UnitsAndPrefetch) {
  options_.ranks = 3;
  for (const int64_t unit_bytes : {1, 10000, 30000, 1000000})
    for (const int prefetch : {0, 1, 3}) {
      options_.unit_bytes = unit_bytes;
      options_.prefetch = prefetch;
      expect_same(options_, fmt::format("unit bytes {} prefetch {}", unit_bytes, prefetch));
    }
}

TEST_F(SameBitsTest, TheRunChangedTheWeights) {
  golden_.run.lr *= 2;
  EXPECT_FALSE(exported_bytes(options_, golden_) == reference_);
}

}  // namespace
}  // namespace zeroplan
