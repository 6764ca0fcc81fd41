// The losses of --loss, in fp64: PyTorch's values, and gradients by central differences.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/tiny_run.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

struct Row {
  const char* loss;
  double value;  // of torch.nn.functional in float64 (PyTorch 2)
};

constexpr Row kRows[] = {
    {"softmax_cross_entropy(scores, labels)", 3.2559899821801794},
    {"softmax_cross_entropy(scores, labels, reduction=sum)", 13.023959928720718},
    {"softmax_cross_entropy(scores, labels, label_smoothing=0.1)", 3.1282556071801797},
    {"softmax_cross_entropy(scores, labels, class_weights=0.5,2,1,0.25)", 4.2618093980671903},
    {"softmax_cross_entropy(scores, labels, class_weights=[0.5, 2, 1, 0.25], label_smoothing=0.2)", 3.8887705148897886},
    {"softmax_cross_entropy(scores, labels, class_weights=[0.5, 2, 1, 0.25], label_smoothing=0.2, reduction=sum)", 14.582889430836707},
    {"nll(scores, labels)", 0.265625},
    {"nll(scores, labels, class_weights=[0.5, 2, 1, 0.25])", 0.35833333333333334},
    {"nll(scores, labels, reduction=sum)", 1.0625},
    {"bce_with_logits(scores, target)", 0.87479234685645779},
    {"bce_with_logits(scores, target, pos_weight=3)", 1.550376286119151},
    {"bce_with_logits(scores, target, pos_weight=0.5,2,1,3, reduction=sum)", 23.270667494274761},
    {"mse(scores, target)", 3.1544921874999998},
    {"mse(scores, target, reduction=sum)", 63.08984375},
    {"l1(scores, target)", 1.4906250000000001},
    {"smooth_l1(scores, target)", 1.06611328125},
    {"smooth_l1(scores, target, beta=0.5)", 1.27265625},
    {"huber(scores, target, delta=1.6)", 1.3683515625},
    {"cosine(scores, target)", 0.80536791955223097},
};

// Scores [5,4] = x · w; the fourth sample is 0.
TinyCase scores_case(const std::vector<double>& weights) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 3}).weight("w", {3, 4}, weights).node("MatMul", {"x", "w"}, {"scores"});
  model.output("scores", {"N", 4});
  return TinyCase(model, {{"x", floats({5, 3}, {0.5, -1, 2, 1.5, 0.25, -0.75, -2, 1, 0.5, 0, 0, 0, 3, -2.5, 1.25})},
                          {"labels", HostTensor::of(DType::i64, {5}, std::vector<int>{2, 0, -100, 3, 1})},
                          {"target", floats({5, 4}, {0, 1, 0, 1, 1, 1, 0, 0, 0.5, 0.25, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1})}});
}

const std::vector<double>& start() {
  static const std::vector<double> weights = {0.5, -0.25, 1, 0.75, -1, 0.5, 0.25, -0.5, 0.25, 1.5, -0.75, 0.5};
  return weights;
}

CompileOptions loss_options(const std::string& loss, int64_t batch, int64_t micro_batches = 1) {
  CompileOptions options = sgd_compile(batch, 1, 3, micro_batches);
  options.precision = DType::f64;
  options.loss = loss;
  return options;
}

double loss_of(const std::vector<double>& weights, const std::string& loss) {
  const TinyCase tiny = scores_case(weights);
  const Plan plan = tiny.compile(loss_options(loss, 5));
  return make_executor(plan)->accumulate(*tiny.data(plan), 0, nullptr, scalars_of_step(0, 0)).loss;
}

class BuiltInLoss : public testing::TestWithParam<Row> {};

TEST_P(BuiltInLoss, IsPyTorchs) { EXPECT_NEAR(loss_of(start(), GetParam().loss), GetParam().value, 1e-12 * GetParam().value); }

// Micro-batches of one sample, and a batch that is not full.
TEST_P(BuiltInLoss, IsTheSameInPieces) {
  const TinyCase tiny = scores_case(start());
  for (const auto& [batch, micro_batches] : {std::pair<int64_t, int64_t>{5, 5}, {8, 1}, {8, 2}, {6, 3}}) {
    RunOptions run = sgd_run(1e-3, 1);
    const TinyRun result = train(tiny, loss_options(GetParam().loss, batch, micro_batches), run);
    EXPECT_NEAR(result.losses().at(0), GetParam().value, 1e-12 * GetParam().value) << batch << " in " << micro_batches;
  }
}

TEST_P(BuiltInLoss, GradientIsThatOfDifferences) {
  const HostTensor gradient = gradients(scores_case(start()), loss_options(GetParam().loss, 5)).at("w");
  constexpr double kStep = 0x1p-12;  // exact in the file's float32
  for (size_t i = 0; i < start().size(); ++i) {
    std::vector<double> up = start(), down = start();
    up[i] += kStep;
    down[i] -= kStep;
    const double expected = (loss_of(up, GetParam().loss) - loss_of(down, GetParam().loss)) / (2 * kStep);
    EXPECT_NEAR(gradient.get(static_cast<int64_t>(i)), expected, 2e-6 * std::max(1.0, std::abs(expected))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, BuiltInLoss, testing::ValuesIn(kRows), [](const auto& info) { return fmt::format("row{}", info.index); });

// Logits of 0 are what a fresh head gives: the gradient is 1/2 - t there.
TEST(BuiltInLosses, BinaryEntropyAtZeroAndFarOut) {
  TinyModel model;
  model.input("x", DType::f32, {"N"}).weight("w", {}, {0}).node("Add", {"x", "w"}, {"scores"}).output("scores", {"N"});
  const TinyCase tiny(model, {{"x", floats({2}, {0, 0})}, {"target", floats({2}, {1, 1})}});
  const CompileOptions options = loss_options("bce_with_logits(scores, target)", 2);
  EXPECT_NEAR(gradients(tiny, options).at("w").get(0), -0.5, 1e-15);
  tiny.write("x", floats({2}, {1000, -1000}));
  const TinyRun far = train(tiny, options, sgd_run(1e-3, 1));
  EXPECT_EQ(far.losses().at(0), 500);
}

TEST(BuiltInLosses, LabelsOfOneColumnAreExplained) {
  const TinyCase tiny = scores_case(start());
  tiny.write("labels", HostTensor(DType::i64, {5, 1}));
  const Plan plan = tiny.compile(loss_options("nll(scores, labels)", 5));
  EXPECT_THAT(error_of([&] { tiny.data(plan); }), HasSubstr("drop its last axis: numpy.save('labels.npy', labels[..., 0])"));
}

TEST(BuiltInLosses, LabelsOutOfRangeAreRefused) {
  const TinyCase tiny = scores_case(start());
  tiny.write("labels", HostTensor::of(DType::i64, {5}, std::vector<int>{0, 1, 4, 0, 0}));
  for (const char* loss : {"nll(scores, labels)", "softmax_cross_entropy(scores, labels)"})
    EXPECT_THAT(error_of([&] { train(tiny, loss_options(loss, 5), sgd_run(0.1, 1)); }), HasSubstr("label out of range: 4"));
}

TEST(BuiltInLosses, NumbersThatDoNotFitAreExplained) {
  const TinyCase tiny = scores_case(start());
  for (const auto& [loss, said] : {std::pair{"nll(scores, labels, class_weights=1,2)", "class_weights has 2 numbers"},
                                   {"bce_with_logits(scores, target, pos_weight=1,2)", "pos_weight has 2 numbers"},
                                   {"mse(score, target)", "did you mean 'scores'"}})
    EXPECT_THAT(error_of([&] { tiny.compile(loss_options(loss, 5)); }), HasSubstr(said));
}

// The loss file: mean cross entropy times a factor that it holds.
std::string loss_file(const TinyCase& tiny, const std::string& scores, const std::string& loss = "loss") {
  TinyModel file;
  file.input(scores, DType::f32, {"batch", 4}).input("labels", DType::i64, {"batch"}).initializer("w", floats({1}, {0.5}));
  file.node("SoftmaxCrossEntropyLoss", {scores, "labels"}, {"entropy"}, {{"ignore_index", int64_t{-100}}});
  file.node("Mul", {"entropy", "w"}, {loss}).output(loss, {1});
  file.save(tiny.file("loss.onnx"));
  return tiny.file("loss.onnx");
}

TEST(LossModel, MakesTheLossOfOutputsAndData) {
  const TinyCase tiny = scores_case(start());
  CompileOptions built_in = loss_options("softmax_cross_entropy(scores, labels)", 4, 2), file = loss_options("", 4, 2);
  file.loss_model = loss_file(tiny, "scores");
  RunOptions run = sgd_run(0.25, 0);
  run.epochs = 2;  // 5 samples in batches of 4
  const TinyRun expected = train(tiny, built_in, run);
  run.lr = 0.5;
  const TinyRun found = train(tiny, file, run);
  ASSERT_EQ(found.steps.size(), 4u);
  for (size_t i = 0; i < found.steps.size(); ++i) EXPECT_NEAR(found.losses()[i], 0.5 * expected.losses()[i], 1e-12);
  EXPECT_EQ(found.weights.size(), 1u);
  file.loss_model = loss_file(tiny, "logits");
  EXPECT_THAT(error_of([&] { tiny.compile(file); }), HasSubstr("--loss-map INPUT=OUTPUT"));
  file.loss_map = {{"logits", "score"}};
  EXPECT_THAT(error_of([&] { tiny.compile(file); }), HasSubstr("did you mean 'scores'"));
  file.loss_map = {{"logits", "scores"}};
  EXPECT_EQ(train(tiny, file, run).losses(), found.losses());
}

TEST(LossModel, ItsSamplesStayApartToo) {
  const TinyCase tiny = scores_case(start());
  TinyModel file;
  file.input("scores", DType::f32, {"batch", 4}).ints("first", {0}).node("ReduceMean", {"scores", "first"}, {"centre"});
  file.node("Sub", {"scores", "centre"}, {"rest"}).node("Mul", {"rest", "rest"}, {"square"});
  file.node("ReduceMean", {"square"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  file.save(tiny.file("loss.onnx"));
  CompileOptions options = loss_options("", 4, 2);
  options.loss_model = tiny.file("loss.onnx");
  EXPECT_THAT(error_of([&] { tiny.compile(options); }), HasSubstr("loss_model.node_rest"));
  options.loss = "scores";
  EXPECT_THAT(error_of([&] { tiny.compile(options); }), HasSubstr("--loss-model"));
}

}  // namespace
}  // namespace zeroplan
