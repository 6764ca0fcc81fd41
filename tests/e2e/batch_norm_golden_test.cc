// Exported models with batch normalization against their float64 references: per micro-batch, synchronised, and in evaluation mode.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/e2e_support/golden.h"

namespace zeroplan {
namespace {

nlohmann::json read_json(const std::string& model, const std::string& file) {
  std::ifstream stream(model_folder(model) + "/" + file + ".json");
  return nlohmann::json::parse(stream);
}

double tolerance(DType precision) { return precision == DType::f64 ? 1e-9 : 1e-5; }

void expect_losses(const std::string& model, const Golden& golden, CompileOptions options, const std::vector<double>& losses,
                   const std::string& what) {
  for (const DType precision : {DType::f32, DType::f64}) {
    options.precision = precision;
    const GoldenRun run = run_golden(model, golden, options);
    ASSERT_EQ(run.losses.size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_LE(std::abs(run.losses[i] - losses[i]), tolerance(precision) * std::abs(losses[i]))
          << model << " " << what << " step " << i << " ranks " << options.ranks << " stage " << options.stage;
  }
}

CompileOptions on_ranks(CompileOptions options, int ranks, int stage = 3) {
  options.ranks = ranks;
  options.stage = stage;
  return options;
}

using Weights = std::map<std::string, HostTensor>;

Weights weights_of(Executor& executor) {
  Weights all;
  for (size_t i = 0; i < executor.plan().parameters.size(); ++i)
    all[executor.plan().parameters[i].parameter.name] = executor.weights(static_cast<int>(i));
  return all;
}

constexpr const char* kFiles[] = {"golden", "golden2", "golden3"};

TEST(BatchNormGolden, LocalStatisticsOfTwoRanks) {
  for (const char* file : kFiles) {
    const Golden golden = read_golden("resnet_nano", file);
    const auto local = read_json("resnet_nano", file).at("losses_local_batchnorm_2_ranks").get<std::vector<double>>();
    for (const int stage : {0, 3}) expect_losses("resnet_nano", golden, on_ranks(golden.compile, 2, stage), local, "local");
  }
}

TEST(BatchNormGolden, SynchronisedAndOneRank) {
  for (const char* file : kFiles) {
    const Golden golden = read_golden("resnet_nano", file);
    expect_losses("resnet_nano", golden, on_ranks(golden.compile, 1), golden.losses, "one rank");
    for (const int ranks : {2, 4}) {
      CompileOptions options = on_ranks(golden.compile, ranks);
      options.sync_bn = true;
      expect_losses("resnet_nano", golden, options, golden.losses, "synchronised");
    }
  }
}

// The running mean, and the variance by ONNX's formula: that of the population.
TEST(BatchNormGolden, FinalStatistics) {
  const Golden golden = read_golden("resnet_nano", "golden");
  const nlohmann::json json = read_json("resnet_nano", "golden");
  const std::string module = json.at("running_of");
  CompileOptions options = on_ranks(golden.compile, 2);
  options.sync_bn = true;
  const GoldenRun run = run_golden("resnet_nano", golden, options);
  const auto expect = [&](const std::string& name, const std::vector<double>& values) {
    const auto& parameters = run.executor->plan().parameters;
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.parameter.name == name; });
    ASSERT_NE(found, parameters.end()) << name;
    const HostTensor got = run.executor->weights(static_cast<int>(found - parameters.begin()));
    for (int64_t i = 0; i < got.count(); ++i) EXPECT_NEAR(got.get(i), values.at(i), 1e-5) << name << " " << i;
  };
  expect(module + ".running_mean", json.at("running_after").at("running_mean").get<std::vector<double>>());
  expect(module + ".running_var", json.at("running_var_after_onnx_formula").get<std::vector<double>>());
}

// Exported in evaluation mode: fixed statistics, unless they are told to be trained.
TEST(BatchNormGolden, EvaluationModeAndItsSwitch) {
  for (const char* file : kFiles) {
    const Golden golden = read_golden("resnet_nano_noopt", file);
    for (const int ranks : {1, 2}) expect_losses("resnet_nano_noopt", golden, on_ranks(golden.compile, ranks), golden.losses, "evaluation");
    const nlohmann::json json = read_json("resnet_nano_noopt", file);
    CompileOptions options = on_ranks(golden.compile, 2);
    options.train_bn = {"."};
    options.sync_bn = true;
    expect_losses("resnet_nano_noopt", golden, options, json.at("losses_if_bn_in_training_mode").get<std::vector<double>>(), "trained");
  }
}

TEST(BatchNormGolden, FrozenNamesAreBitUnchanged) {
  const std::vector<std::string> kept = {"net.fc1.weight", "net.fc1.bias"};
  for (const char* file : kFiles) {
    Golden golden = read_golden("frozen_mlp", file);
    golden.compile.freeze = {"net.fc1"};
    for (const int ranks : {1, 2}) expect_losses("frozen_mlp", golden, on_ranks(golden.compile, ranks), golden.losses, "frozen");
    const CompileOptions options = on_ranks(golden.compile, 2);
    const Weights after = weights_of(*run_golden("frozen_mlp", golden, options).executor);
    golden.run.steps = 1;
    golden.run.lr = 1e-30;
    golden.run.weight_decay = 0;
    const Weights before = weights_of(*run_golden("frozen_mlp", golden, options).executor);
    for (const auto& [name, values] : before) EXPECT_EQ(values == after.at(name), std::count(kept.begin(), kept.end(), name) == 1) << name;
    EXPECT_EQ(before.count("net.bn.running_mean"), 0u);  // a constant
  }
}

}  // namespace
}  // namespace zeroplan
