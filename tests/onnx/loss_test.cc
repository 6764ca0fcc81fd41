// Losses: outputs of the model, built-ins, and what may follow the mean.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

ModelBuilder scores_model() {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("scores", {"N", "2"});
  m.weight("w", {3, 2}, {1, 0, 0, 1, 1, 1});
  m.node("MatMul", {"x", "w"}, {"scores"});
  return m;
}

TEST(Losses, CandidatesAreNamed) {
  TemporaryFolder folder;
  const std::string path = scores_model().save(folder.file("m.onnx"));
  EXPECT_THAT(message([&] { import_model(path, samples(2)); }), HasSubstr("softmax_cross_entropy(scores, labels)"));
}

TEST(Losses, BuiltInsAddTheirLabels) {
  TemporaryFolder folder;
  const std::string path = scores_model().save(folder.file("m.onnx"));
  const HostTensor x = HostTensor::of<float>(DType::f32, {2, 3}, {1, 0, 0, 0, 1, 0});
  ImportOptions options = samples(2);
  options.loss = "mse(scores, target)";
  const ImportedModel mse = import_model(path, options);
  EXPECT_NEAR(evaluate_loss(mse, {{"x", x}, {"target", HostTensor(DType::f32, {2, 2})}}), 0.5, 1e-7);
  options.loss = "softmax_cross_entropy(scores, y, ignore_index=-1)";
  const ImportedModel entropy = import_model(path, options);
  EXPECT_EQ(entropy.inputs[1].name, "y");
  EXPECT_EQ(entropy.inputs[1].limit, 2);
  EXPECT_TRUE(entropy.inputs[1].label);
  EXPECT_EQ(entropy.inputs[1].ignored, -1);
  EXPECT_NEAR(evaluate_loss(entropy, {{"x", x}, {"y", HostTensor::of<int64_t>(DType::i64, {2}, {0, -1})}}), std::log(1 + std::exp(-1.0)),
              1e-6);
}

TEST(Losses, ProbabilitiesWhereScoresAreTakenAreNamed) {
  TemporaryFolder folder;
  ModelBuilder m = scores_model();
  m.node("Softmax", {"scores"}, {"p"});
  m.node("LogSoftmax", {"scores"}, {"log_p"});
  m.node("Sigmoid", {"scores"}, {"s"});
  for (const char* name : {"p", "log_p", "s"}) m.output(name, {"N", "2"});
  const std::string path = m.save(folder.file("m.onnx"));
  const auto told = [&](const std::string& loss) {
    ImportOptions options = samples(2);
    options.loss = loss;
    for (const std::string& line : import_model(path, options).report)
      if (line.find("probabilities") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(told("softmax_cross_entropy(p, y)"));
  EXPECT_TRUE(told("nll(p, y)"));
  EXPECT_TRUE(told("bce_with_logits(s, t)"));
  EXPECT_FALSE(told("softmax_cross_entropy(scores, y)"));
  EXPECT_FALSE(told("nll(log_p, y)"));
  EXPECT_FALSE(told("mse(p, t)"));
}

TEST(Losses, LabelsThatAreNoDataAreSaid) {
  TemporaryFolder folder;
  const std::string path = scores_model().save(folder.file("m.onnx"));
  ImportOptions options = samples(3);
  const auto refused = [&](const std::string& loss) {
    options.loss = loss;
    return message([&] { import_model(path, options); });
  };
  const auto report = [&](const std::string& loss) {
    options.loss = loss;
    return fmt::format("{}", fmt::join(import_model(path, options).report, "\n"));
  };
  EXPECT_THAT(report("mse(scores, w)"), HasSubstr("--loss: 'w' is a weight of the model, so that no data is read for it"));
  EXPECT_THAT(report("mse(scores, scores)"), HasSubstr("'scores' is a value that the model computes"));
  EXPECT_THAT(report("mse(scores, t)"), testing::Not(HasSubstr("no data is read for it")));
  options.samples = 2;
  EXPECT_THAT(refused("mse(scores, w)"), testing::AllOf(HasSubstr("'w' is a weight of the model, float32 of shape [3,2]"),
                                                        HasSubstr("choose another name, which is that of the data's file")));
  EXPECT_THAT(refused("softmax_cross_entropy(scores, y, axis=9)"),
              HasSubstr("--loss: axis=9 is outside output 'scores' of shape [2,2]; give one from -2 to 1"));
}

TEST(Losses, ListsThatAreEmptyAreSaid) {
  TemporaryFolder folder;
  ModelBuilder silent = scores_model(), file;
  silent.proto.mutable_graph()->clear_output();
  ImportOptions options = samples(2);
  options.loss = "mse(scores, t)";
  EXPECT_THAT(message([&] { import_model(silent.save(folder.file("m.onnx")), options); }),
              HasSubstr("which has none; export it with outputs"));
  file.output("loss", {}).constant("c", 1).add("Identity", {"c"}, "loss");
  options.loss.clear();
  options.loss_model = file.save(folder.file("loss.onnx"));
  EXPECT_THAT(message([&] { import_model(scores_model().save(folder.file("m.onnx")), options); }),
              HasSubstr("it has none, the model scores; export it with the model's output as an input"));
  options.loss_map = {{"a", "scores"}};
  EXPECT_THAT(message([&] { import_model(scores_model().save(folder.file("m.onnx")), options); }), HasSubstr("there is none"));
}

TEST(Losses, LinearEndsKeepTheMean) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression();
  m.weight("unused_half", {}, {0.5f});
  m.constant("half", 0.5f);
  m.node("Mul", {"loss", "half"}, {"halved"});
  m.node("Neg", {"halved"}, {"negative"});
  m.node("Exp", {"halved"}, {"curved"});
  m.output("negative", {}).output("curved", {});
  const std::string path = m.save(folder.file("m.onnx"));
  ImportOptions options = samples(2);
  options.micro_batches = 4;
  options.loss = "negative";
  const ImportedModel model = import_model(path, options);
  EXPECT_EQ(evaluate_parts(model, {{"x", HostTensor(DType::f32, {2, 3})}}).weight, 4.0);
  options.loss = "curved";
  EXPECT_THAT(message([&] { import_model(path, options); }), HasSubstr("node_curved"));
  options.micro_batches = 1;
  EXPECT_EQ(message([&] { import_model(path, options); }), "");
}

// Sum of masked errors over the sum of the mask: the denominator is data, so windows of micro-batches add it up.
TEST(Losses, AMaskedMeanIsSumOverWeight) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "3"}).input("mask", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.node("Mul", {"x", "w"}, {"y"});
  m.node("Mul", {"y", "mask"}, {"masked"});
  m.add("ReduceSum", {"masked"}, "total", {{"keepdims", 0}});
  m.add("ReduceSum", {"mask"}, "count", {{"keepdims", 0}});
  m.node("Div", {"total", "count"}, {"loss"});
  ImportOptions options = samples(2);
  options.micro_batches = 2;
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  ASSERT_NE(model.graph.loss.weight, kNone);
  const HostTensor x = HostTensor::of<float>(DType::f32, {2, 3}, {1, 1, 1, 2, 2, 2}),
                   mask = HostTensor::of<float>(DType::f32, {2, 3}, {1, 0, 0, 0, 0, 1});
  EXPECT_NEAR(evaluate_loss(model, {{"x", x}, {"mask", mask}}), 3.5, 1e-6);
  // A denominator that is trained does not add up.
  m.proto.mutable_graph()->mutable_node(3)->set_input(0, "masked");
  EXPECT_THAT(message([&] { import_model(m.save(folder.file("m.onnx")), options); }), HasSubstr("neither a mean nor a sum"));
}

// Sum of x·w, `op`'d by x.shape[axis], as exporters write a mean over the batch.
ModelBuilder shape_scaled(const std::string& op, int64_t axis) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.ints("axis", {}, {axis});
  m.node("Mul", {"x", "w"}, {"y"});
  m.add("ReduceSum", {"y"}, "total", {{"keepdims", 0}});
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "axis"}, {"n"});
  m.add("Cast", {"n"}, "count", {{"to", onnx::TensorProto::FLOAT}});
  m.node(op, {"total", "count"}, {"loss"});
  return m;
}

TEST(Losses, ASumDividedByTheNumberOfSamplesIsAMean) {
  TemporaryFolder folder;
  for (const int64_t n : {1, 2}) {
    ImportOptions options = samples(n);
    options.micro_batches = 2;
    const ImportedModel batch = import_model(shape_scaled("Div", 0).save(folder.file("m.onnx")), options);
    ASSERT_NE(batch.graph.loss.weight, kNone) << n;
    const HostTensor ones = HostTensor::of<float>(DType::f32, {n, 3}, std::vector<float>(3 * n, 1));
    EXPECT_EQ(evaluate_parts(batch, {{"x", ones}}).weight, n);
    EXPECT_NEAR(evaluate_loss(batch, {{"x", ones}}), 6, 1e-6);
    const ImportedModel width = import_model(shape_scaled("Div", 1).save(folder.file("w.onnx")), options);
    EXPECT_EQ(width.graph.loss.weight, kNone);  // 3, for any batch: still a sum
    EXPECT_NEAR(evaluate_loss(width, {{"x", ones}}), 2.0 * n, 1e-6);
    EXPECT_THAT(message([&] { import_model(shape_scaled("Mul", 0).save(folder.file("x.onnx")), options); }),
                HasSubstr("number of samples"));
    options.micro_batches = 1;
    EXPECT_NEAR(evaluate_loss(import_model(folder.file("x.onnx"), options), {{"x", ones}}), 6.0 * n * n, 1e-5);
  }
}

// Scores [T,N,C]: the labels [T,N] have their samples on axis 1, for any number of steps.
TEST(Losses, LabelsFollowTheSamplesOfTheScores) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "2", "3"}).output("scores", {"2", "N", "2"});
  m.weight("w", {3, 2}, {1, 0, 0, 1, 1, 1});
  ModelBuilder::set(m.node("Transpose", {"x"}, {"t"}), "perm", std::vector<int64_t>{1, 0, 2});
  m.node("MatMul", {"t", "w"}, {"scores"});
  const std::string path = m.save(folder.file("m.onnx"));
  for (const int64_t micro_batches : {1, 2})
    for (const char* loss : {"softmax_cross_entropy(scores, y)", "mse(scores, y)"}) {
      ImportOptions options = samples(2);
      options.micro_batches = micro_batches;
      options.loss = loss;
      EXPECT_EQ(import_model(path, options).inputs[1].sample_axis, 1) << loss;
      options.sample_axes = {{"y", 0}};
      EXPECT_THAT(message([&] { import_model(path, options); }), HasSubstr("--sample-axis y=1")) << loss;
    }
}

// Batch centring, and each sample's scores against all others: micro-batches would train something else.
TEST(Losses, SamplesThatMeetNeedOneMicroBatch) {
  TemporaryFolder folder;
  ModelBuilder centred;
  centred.input("x", {"N", "3"}).output("loss", {});
  centred.weight("w", {3}, {1, 2, 3});
  centred.ints("first", {1}, {0});
  centred.node("Mul", {"x", "w"}, {"y"});
  centred.node("ReduceMean", {"y", "first"}, {"mean"});
  centred.node("Sub", {"y", "mean"}, {"rest"});
  centred.node("Mul", {"rest", "rest"}, {"square"});
  centred.add("ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
  ModelBuilder pairs;
  pairs.input("x", {"N", "3"}).output("loss", {});
  pairs.weight("w", {3}, {1, 2, 3});
  pairs.node("Mul", {"x", "w"}, {"y"});
  pairs.node("Transpose", {"y"}, {"t"});
  pairs.node("MatMul", {"y", "t"}, {"scores"});
  pairs.node("Softmax", {"scores"}, {"p"});
  pairs.add("ReduceMean", {"p"}, "loss", {{"keepdims", 0}});
  for (ModelBuilder* m : {&centred, &pairs})
    for (const int64_t n : {1, 2}) {
      ImportOptions options = samples(n);
      EXPECT_EQ(message([&] { import_model(m->save(folder.file("m.onnx")), options); }), "");
      options.micro_batches = 2;
      EXPECT_THAT(message([&] { import_model(folder.file("m.onnx"), options); }), HasSubstr("use one micro-batch")) << n;
    }
}

TEST(Losses, OlderOpsetsAreRaised) {
  TemporaryFolder folder;
  ModelBuilder m(11);
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.node("Mul", {"x", "w"}, {"xw"});
  m.add("Softmax", {"xw"}, "p", {{"axis", 1}});
  m.add("ReduceMean", {"p"}, "loss", {{"keepdims", 0}});
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), samples(2));
  EXPECT_EQ(model.opset, 11);
  EXPECT_NEAR(evaluate_loss(model, {{"x", HostTensor::of<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}}), 1.0 / 3, 1e-6);
}

// k lies inside a branch of the loss model's file, in 1,200 bytes that stay in the file.
TEST(LossModels, TensorsInsideBranchesAreReadFromTheirOwnFile) {
  TemporaryFolder folder;
  ModelBuilder m, file;
  m.input("x", {"N", "300"}).output("y", {"N", "300"});
  m.weight("w", {300}, std::vector<float>(300, 2));
  m.node("Mul", {"x", "w"}, {"y"});
  file.input("y", {"batch", "300"}).output("loss", {});
  onnx::TensorProto& condition = *file.proto.mutable_graph()->add_initializer();
  condition.set_name("yes");
  condition.set_data_type(onnx::TensorProto::BOOL);
  condition.set_raw_data(std::string(1, '\1'));
  onnx::NodeProto& choice = file.node("If", {"yes"}, {"scaled"});
  float value = 3;
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *choice.add_attribute();
    branch.set_name(name);
    branch.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *branch.mutable_g();
    graph.set_name(name);
    ModelBuilder::fill(*graph.add_initializer(), {300}, std::vector<float>(300, value++));
    graph.mutable_initializer(0)->set_name("k");
    onnx::NodeProto& product = *graph.add_node();
    product.set_op_type("Mul");
    product.add_input("y");
    product.add_input("k");
    product.add_output("inner");
    graph.add_output()->set_name("inner");
    graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  file.add("ReduceMean", {"scaled"}, "loss", {{"keepdims", 0}});
  ImportOptions options = samples(2);
  options.loss_model = file.save(folder.file("loss.onnx"));
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  EXPECT_EQ(model.graph.parameters[0].name, "w");
  EXPECT_NEAR(evaluate_loss(model, {{"x", HostTensor::of(DType::f32, {2, 300}, std::vector<float>(600, 0.5f))}}), 3, 1e-5);
}

}  // namespace
}  // namespace zeroplan
