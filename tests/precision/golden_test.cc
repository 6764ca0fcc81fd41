// Exported models in 16 bits: losses near those of float64, and one set of bits whatever the ranks and the stage.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/golden.h"

namespace zeroplan {
namespace {

using Case = std::tuple<std::string, DType>;

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), dtype_name(std::get<1>(info.param)));
}

bool is_swept(const std::string& model) { return model == "mlp" || model == "gpt2_nano_dynamo"; }

class HalfGolden : public testing::TestWithParam<Case> {};

TEST_P(HalfGolden, LossesAreNearFloat64) {
  const auto& [model, precision] = GetParam();
  const Golden golden = read_golden(model, "golden");
  for (const int ranks : is_swept(model) ? std::vector<int>{1, 2, 4} : std::vector<int>{1, 2})
    for (int stage = is_swept(model) ? 0 : 3; stage <= 3; ++stage) {
      CompileOptions options = golden.compile;
      options.ranks = ranks;
      options.stage = stage;
      options.precision = precision;
      const GoldenRun run = run_golden(model, golden, options);
      ASSERT_EQ(run.losses.size(), golden.losses.size());
      double apart = 0;
      for (size_t i = 0; i < run.losses.size(); ++i) {
        EXPECT_LE(std::abs(run.losses[i] - golden.losses[i]), 2e-2 * std::abs(golden.losses[i]))
            << "ranks " << ranks << " stage " << stage << " step " << i;
        apart = std::max(apart, std::abs(run.losses[i] - golden.losses[i]));
      }
      EXPECT_GT(apart, 1e-6) << "float32 would be as near";
    }
}

INSTANTIATE_TEST_SUITE_P(Models, HalfGolden,
                         testing::Combine(testing::Values("mlp", "gpt2_nano_dynamo", "gpt2_nano_ts", "gpt2_nano_logits", "llama_nano",
                                                          "llama_nano_op23", "lstm_nano", "bert_nano", "resnet_nano", "resnet_nano_eval",
                                                          "unet_nano", "vit_nano"),
                                          testing::Values(DType::bf16, DType::f16)),
                         name_of);

class HalfBits : public testing::TestWithParam<Case> {};

std::string exported_bytes(const std::string& model, const Golden& golden, const CompileOptions& options) {
  const TemporaryFolder folder;
  const GoldenRun run = run_golden(model, golden, options);
  export_trained(*run.executor, folder.file("trained.onnx"));
  return read_file(folder.file("trained.onnx"));
}

TEST_P(HalfBits, AreThoseOfOneRank) {
  const auto& [model, precision] = GetParam();
  Golden golden = read_golden(model, "golden");
  golden.run.clip = 0.5;
  golden.run.steps = 4;
  for (const std::optional<DType> wire : {std::optional<DType>{}, std::optional(precision)}) {
    CompileOptions options = golden.compile;
    options.micro_batches = 4;
    options.precision = precision;
    options.reduce_dtype = wire;
    std::string reference;
    for (const int ranks : {1, 2, 4})
      for (int stage = 0; stage <= 3; ++stage) {
        options.ranks = ranks;
        options.stage = stage;
        const std::string bytes = exported_bytes(model, golden, options);
        if (reference.empty()) reference = bytes;
        EXPECT_TRUE(bytes == reference) << "ranks " << ranks << " stage " << stage << " wire " << dtype_name(options.wire_dtype());
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HalfBits,
                         testing::Combine(testing::Values("mlp", "gpt2_nano_dynamo"), testing::Values(DType::bf16, DType::f16)), name_of);

}  // namespace
}  // namespace zeroplan
