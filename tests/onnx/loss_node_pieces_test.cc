// Loss nodes inside the model: their means are sums over weights, so that micro-batches add up to the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

struct Case {
  const char *op, *reduction;
  bool weighted;
  int64_t ignored;  // -1: none
};

// x[N,3] · w[3,6], as N samples of 3 classes at 2 places, into the loss node.
ModelBuilder model_of(const Case& c) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).input("labels", {"N", "2"}, onnx::TensorProto::INT64).output("loss", {});
  m.weight("w", {3, 6}, {1, 0, 2, -1, 0.5f, 1, 0, 1, -2, 1, 1, 0.5f, 2, 1, 0, 0, -1, 1});
  m.weight("class_weights", {3}, {0.5f, 2, 0.25f});
  m.ints("shape", {3}, {-1, 3, 2});
  m.node("MatMul", {"x", "w"}, {"flat"});
  m.node("Reshape", {"flat", "shape"}, {"scores"});
  std::string scores = "scores";
  if (c.op[0] == 'N') m.add("LogSoftmax", {"scores"}, scores = "log_p", {{"axis", 1}});
  std::vector<std::string> inputs = {scores, "labels"};
  if (c.weighted) inputs.push_back("class_weights");
  onnx::NodeProto& node = m.node(c.op, inputs, {"loss"});
  ModelBuilder::set(node, "reduction", std::string(c.reduction));
  if (c.ignored >= 0) ModelBuilder::set(node, "ignore_index", c.ignored);
  return m;
}

class LossNodePieces : public testing::TestWithParam<Case> {};

TEST_P(LossNodePieces, AddUpToTheWholeBatch) {
  TemporaryFolder folder;
  const std::string path = model_of(GetParam()).save(folder.file("m.onnx"));
  const std::vector<float> x = {1, 2, 0, -1, 0.5f, 1, 0, 0, 2, 1, -1, 1};
  const std::vector<int64_t> labels = {0, 2, 1, 1, 2, 2, 0, 2};
  const auto parts = [&](int64_t micro_batches, int64_t v) {
    const int64_t n = 4 / micro_batches;
    ImportOptions options = samples(n);
    options.micro_batches = micro_batches;
    const ImportedModel model = import_model(path, options);
    EXPECT_EQ(model.graph.parameters.size(), 1u);  // weights of classes are no parameter
    return evaluate_parts(model, {{"x", HostTensor::of<float>(DType::f32, {n, 3}, {x.begin() + v * n * 3, x.begin() + (v + 1) * n * 3})},
                                  {"labels", HostTensor::of<int64_t>(DType::i64, {n, 2}, {labels.begin() + v * n * 2, labels.end()})}});
  };
  const LossParts whole = parts(1, 0), first = parts(2, 0), second = parts(2, 1);
  const bool mean = GetParam().reduction == std::string("mean");
  EXPECT_NEAR((first.sum + second.sum) / (mean ? first.weight + second.weight : 1), whole.sum / whole.weight, 1e-6);
  EXPECT_EQ(first.weight != 1, mean);
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, LossNodePieces,
    testing::Values(Case{"SoftmaxCrossEntropyLoss", "mean", false, -1}, Case{"SoftmaxCrossEntropyLoss", "mean", false, 2},
                    Case{"SoftmaxCrossEntropyLoss", "mean", true, -1}, Case{"SoftmaxCrossEntropyLoss", "mean", true, 2},
                    Case{"SoftmaxCrossEntropyLoss", "sum", true, 2}, Case{"NegativeLogLikelihoodLoss", "mean", false, -1},
                    Case{"NegativeLogLikelihoodLoss", "mean", false, 2}, Case{"NegativeLogLikelihoodLoss", "mean", true, -1},
                    Case{"NegativeLogLikelihoodLoss", "mean", true, 2}, Case{"NegativeLogLikelihoodLoss", "sum", false, 2}),
    [](const auto& info) {
      const Case& c = info.param;
      return std::string(c.op) + "_" + c.reduction + (c.weighted ? "_weighted" : "") + (c.ignored < 0 ? "" : "_ignoring");
    });

}  // namespace
}  // namespace zeroplan
