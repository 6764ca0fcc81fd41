// One weight under two names or in two places is one parameter; both come back in the export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;
using Values = std::vector<double>;

// W as embedding table (index 0) and, transposed, as output projection; loss = mean of logit 1.
TinyModel embedding_and_projection(const std::vector<double>& w, bool copied) {
  TinyModel model;
  model.input("index", DType::i64, {"N"}).weight("embed.weight", {2, 2}, w);
  model.node("Gather", {"embed.weight", "index"}, {"h"});
  if (copied)
    model.weight("onnx::MatMul_7", {2, 2}, {w[0], w[2], w[1], w[3]});
  else
    model.node("Transpose", {"embed.weight"}, {"projection"}, {{"perm", std::vector<int64_t>{1, 0}}});
  model.node("MatMul", {"h", copied ? "onnx::MatMul_7" : "projection"}, {"logits"});
  model.ints("from", {1}).ints("to", {2}).ints("axes", {1});
  model.node("Slice", {"logits", "from", "to", "axes"}, {"logit"});
  model.node("ReduceMean", {"logit"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return model;
}

HostTensor zeros(int64_t samples) { return HostTensor::of(DType::i64, {samples}, std::vector<int64_t>(samples, 0)); }

// loss = W[0]·W[1], so the gradient is [W[1], W[0]].
TEST(T29, TableAndTransposedUse) {
  const TinyCase tiny(embedding_and_projection({1, 0, 0, 1}, false), {{"index", zeros(4)}});
  for (const CompileOptions& options : everywhere(sgd_compile(4, 1, 3, 4))) {
    const Weights found = gradients(tiny, options);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(values_of(found.at("embed.weight")), Pointwise(DoubleNear(0), Values{0.0, 1, 1, 0})) << describe(options);
    const TinyRun run = train(tiny, options, sgd_run(0.1, 1));
    EXPECT_THAT(values_of(run.weights.at("embed.weight")), Pointwise(DoubleNear(1e-7), Values{1, -0.1, -0.1, 1})) << describe(options);
  }
}

TEST(T29, TransposedCopyIsTiedAgain) {
  const TinyCase tiny(embedding_and_projection({1, 2, 3, 4}, true), {{"index", zeros(2)}});
  for (const CompileOptions& options : everywhere(sgd_compile(2, 1, 3, 2), {1, 2})) {
    const Plan plan = tiny.compile(options);
    ASSERT_EQ(plan.parameters.size(), 1u);
    EXPECT_THAT(testing::PrintToString(plan.report_lines), HasSubstr("onnx::MatMul_7"));
    EXPECT_THAT(values_of(gradients(tiny, options).at("embed.weight")), Pointwise(DoubleNear(0), Values{3.0, 4, 1, 2}))
        << describe(options);
  }
}

TEST(T29, UntieKeepsThemApart) {
  const TinyCase tiny(embedding_and_projection({1, 2, 3, 4}, true), {{"index", zeros(2)}});
  CompileOptions options = sgd_compile(2);
  options.untie = {"embed"};
  const Weights found = gradients(tiny, options);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(values_of(found.at("embed.weight")), Pointwise(DoubleNear(0), Values{3.0, 4, 0, 0}));
  EXPECT_THAT(values_of(found.at("onnx::MatMul_7")), Pointwise(DoubleNear(0), Values{0.0, 1, 0, 2}));
}

// Both names of the tie come out of the export with the trained weight, one of them transposed.
TEST(T22, ExportHoldsBothNamesOfATie) {
  const TinyCase tiny(embedding_and_projection({1, 2, 3, 4}, true), {{"index", zeros(2)}});
  const Plan plan = tiny.compile(sgd_compile(2, 2));
  const auto executor = make_executor(plan);
  const auto data = tiny.data(plan);
  run_training(*executor, *data, nullptr, sgd_run(0.1, 1), [](const RunEvent&) {});
  export_trained(*executor, tiny.file("trained.onnx"));

  CompileOptions apart = sgd_compile(2);
  apart.untie = {"embed"};
  const Plan again = compile(tiny.file("trained.onnx"), apart);
  ASSERT_EQ(again.parameters.size(), 2u);
  const Weights weights = all_weights(*make_executor(again));
  EXPECT_THAT(values_of(weights.at("embed.weight")), Pointwise(DoubleNear(1e-6), Values{0.7, 1.6, 2.9, 3.8}));
  EXPECT_THAT(values_of(weights.at("onnx::MatMul_7")), Pointwise(DoubleNear(1e-6), Values{0.7, 2.9, 1.6, 3.8}));
}

// w1 frozen, one weight under two names, running statistics: the file that is exported holds what the ranks hold, bit by bit.
TEST(T22, ExportHoldsFrozenTiedAndBufferedValuesBitByBit) {
  TinyModel model;
  model.input("index", DType::i64, {"N"}).weight("embed.weight", {3, 2}, {1, 2, 3, 4, 0.1, 0.7}).weight("w1", {2}, {0.3, -1.7});
  for (const char* name : {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"})
    model.weight(name, {2}, {name[5] == 'w' ? 1.5 : 0.25, 1});
  model.weight("onnx::MatMul_7", {2, 3}, {1, 3, 0.1, 2, 4, 0.7});
  model.node("Gather", {"embed.weight", "index"}, {"h"}).node("Mul", {"h", "w1"}, {"scaled"});
  model.node("BatchNormalization", {"scaled", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"},
             {"n", "mean_out", "var_out"}, {{"training_mode", int64_t{1}}, {"momentum", 0.9}});
  model.node("MatMul", {"n", "onnx::MatMul_7"}, {"logits"}).node("Mul", {"logits", "logits"}, {"square"});
  model.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const TinyCase tiny(model, {{"index", HostTensor::of(DType::i64, {4}, std::vector<int>{0, 2, 1, 0})}});
  CompileOptions options = sgd_compile(4);
  options.freeze = {"^w1$"};
  for (const CompileOptions& everywhere_options : everywhere(options)) {
    const Plan plan = tiny.compile(everywhere_options);
    const auto executor = make_executor(plan);
    const auto data = tiny.data(plan);
    run_training(*executor, *data, nullptr, sgd_run(0.1, 3), [](const RunEvent&) {});
    export_trained(*executor, tiny.file("trained.onnx"));
    const Weights held = all_weights(*executor);
    EXPECT_EQ(values_of(held.at("w1")), (Values{0.3f, -1.7f}));
    EXPECT_NE(held.at("norm.running_mean").get(0), 0.25);
    EXPECT_NE(held.at("embed.weight").get(0), 1);

    CompileOptions apart = sgd_compile(4);
    apart.untie = {"embed"};
    apart.train_bn = {"norm"};
    const Weights read = all_weights(*make_executor(compile(tiny.file("trained.onnx"), apart)));
    ASSERT_EQ(read.size(), held.size() + 1);
    for (const auto& [name, values] : held) EXPECT_TRUE(read.at(name) == values) << name << " " << describe(everywhere_options);
    const HostTensor &table = held.at("embed.weight"), &head = read.at("onnx::MatMul_7");
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(head.get(i % 2 * 3 + i / 2), table.get(i));
  }
}

}  // namespace
}  // namespace zeroplan
