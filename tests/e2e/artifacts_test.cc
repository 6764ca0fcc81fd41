// Training from ONNX Runtime's artifacts alone: its own losses, by the program and by the library.
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/stated_run.h"
#include "tests/e2e_support/command.h"
#include "tests/e2e_support/golden.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

std::string artifacts(const std::string& file = "") { return model_folder("ort_artifacts_mlp") + file; }

nlohmann::json reference() { return nlohmann::json::parse(read_file(artifacts("/golden.json"))); }

std::vector<double> losses_of(const std::string& model, const CompileOptions& options) {
  const Plan plan = compile(model, options);
  RunOptions run;
  run.steps = 10;
  run.lr = 0.01;
  take_stated(plan, {"lr"}, run);
  const auto executor = make_executor(plan);
  std::vector<double> losses;
  run_training(*executor, *open_npy_folder(artifacts("/data"), plan), nullptr, run,
               [&](const RunEvent& event) { losses.push_back(event.step->loss); });
  return losses;
}

double furthest(const std::vector<double>& losses) {
  const auto expected = reference().at("losses").get<std::vector<double>>();
  double worst = losses.size() == expected.size() ? 0 : 1e9;
  for (size_t i = 0; i < losses.size() && i < expected.size(); ++i) worst = std::max(worst, std::abs(losses[i] - expected[i]));
  return worst;
}

TEST(OrtArtifacts, LossesAreItsOwn) {
  for (const std::string& model : {artifacts(), artifacts("/eval_model.onnx")})
    for (const int ranks : {1, 2}) {
      CompileOptions options;
      options.batch = 8;
      options.ranks = ranks;
      options.model_optimizer = true;
      EXPECT_LE(furthest(losses_of(model, options)), 1e-6) << model << " ranks " << ranks;
      options.model_optimizer = false;  // zeroplan's defaults are another optimizer
      EXPECT_GT(furthest(losses_of(model, options)), 1e-4) << model << " ranks " << ranks;
    }
}

TEST(OrtArtifacts, TheProgramTrainsExportsAndRunsFromAPlan) {
  const TemporaryFolder folder;
  const std::string data = artifacts("/data"), metrics = folder.file("metrics.jsonl"), exported = folder.file("trained.onnx");
  const auto last_loss = [&] {
    std::ifstream lines(metrics);
    std::string line, last;
    while (std::getline(lines, line)) last = line;
    std::filesystem::remove(metrics);
    return nlohmann::json::parse(last).at("loss").get<double>();
  };
  const std::string run = fmt::format("--data {} --lr 0.01 --metrics {} --export {}", data, metrics, exported);
  const Outcome trained = run_command(fmt::format("{} train {} --batch 8 {}", kProgram, artifacts(), run));
  ASSERT_EQ(trained.code, 0) << trained.output;
  const double expected = reference().at("losses").get<std::vector<double>>().back();
  EXPECT_NEAR(last_loss(), expected, 1e-4);
  const Outcome evaluated =
      run_command(fmt::format("{} train {} --batch 8 --data {} --lr 1e-30 --steps 1 --metrics {}", kProgram, exported, data, metrics));
  ASSERT_EQ(evaluated.code, 0) << evaluated.output;
  EXPECT_NEAR(last_loss(), reference().at("eval_after").get<double>(), 1e-4);

  const std::string plan = folder.file("model.zplan");
  ASSERT_EQ(run_command(fmt::format("{} compile {} --batch 8 -o {}", kProgram, artifacts(), plan)).code, 0);
  const Outcome planned = run_command(fmt::format("{} run {} {}", kProgram, plan, run));
  ASSERT_EQ(planned.code, 0) << planned.output;
  EXPECT_NEAR(last_loss(), expected, 1e-4);
}

TEST(OrtArtifacts, WhatTheUserGivesGoesFirst) {
  const Plan plan = [] {
    CompileOptions options;
    options.batch = 8;
    options.model_optimizer = true;
    return compile(artifacts(), options);
  }();
  RunOptions all, none;
  take_stated(plan, {}, all);
  EXPECT_EQ(all.eps, 1e-6);
  EXPECT_EQ(all.weight_decay, 0);
  EXPECT_EQ(all.adam_form, AdamForm::hugging_face);
  take_stated(plan, {"betas", "eps", "weight-decay", "adam-form"}, none);
  EXPECT_EQ(none.eps, RunOptions().eps);
  EXPECT_EQ(none.weight_decay, RunOptions().weight_decay);
  EXPECT_EQ(none.adam_form, AdamForm::torch);
}

// p' = (p - lr·√(1 - β2^t) / (1 - β1^t) · m / (√v + ε)) · (1 - lr·λ), on one weight.
TEST(OrtArtifacts, HuggingFacesFormIsItsFormula) {
  RunOptions options;
  options.lr = 0.1;
  options.eps = 0.01;
  options.weight_decay = 0.5;
  options.adam_form = AdamForm::hugging_face;
  double p = 2, q = 2, m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    const double g = 0.3 * t - 0.7;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double c1 = 1 - std::pow(options.beta1, t), c2 = 1 - std::pow(options.beta2, t);
    p = (p - options.lr * std::sqrt(c2) / c1 * m / (std::sqrt(v) + options.eps)) * (1 - options.lr * options.weight_decay);
    const RunScalars s = step_scalars(options, "adamw", t, 5);
    q = q * (1 - s.lr * s.weight_decay) - s.lr / c1 * m / (std::sqrt(v / c2) + s.epsilon);
    EXPECT_NEAR(q, p, 1e-14) << t;
  }
}

}  // namespace
}  // namespace zeroplan
