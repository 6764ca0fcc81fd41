// Parameters inside branches and bodies, and what of control flow is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kHead[] = "<ir_version: 8, opset_import: [\"\" : 13]>\ncase ";

std::vector<std::string> names(const ImportedModel& model) {
  std::vector<std::string> list;
  for (const Parameter& p : model.graph.parameters) list.push_back(p.name);
  return list;
}

// Two branches whose weights have one name; `condition` is a node that computes c.
std::string branches(const std::string& condition) {
  return kHead + std::string("(float[N,2] x) => (float loss) {\n") + condition + R"(
    y = If (c) <then_branch = a () => (float[N,2] ty) <float[2,2] w = {1, 2, 3, 4}> { ty = MatMul (x, w) },
                else_branch = b () => (float[N,2] ey) <float[2,2] w = {5, 6, 7, 8}> { ey = MatMul (x, w) }>
    loss = ReduceMean <keepdims = 0> (y)
  })";
}

const char* kYes = "c = Constant <value = bool {1}> ()";
const char* kNegative = "zero = Constant <value = float {0.0}> () sum = ReduceSum <keepdims = 0> (x) c = Less (sum, zero)";

HostTensor row(float a, float b) { return HostTensor::of<float>(DType::f32, {1, 2}, {a, b}); }

TEST(ControlFlow, TheWeightOfTheTakenBranchIsTrainedAndWrittenBack) {
  TemporaryFolder folder;
  const std::string path = save_text(folder.file("m.onnx"), branches(kYes));
  const ImportedModel model = import_model(path, samples(1));
  EXPECT_THAT(names(model), ElementsAre("w#2"));
  EXPECT_EQ(evaluate_loss(model, {{"x", row(1, 1)}}), 5);
  export_model(path, folder.file("out.onnx"), model.graph.parameters, [](const TakeParameter& take) {
    const std::vector<float> values = {10, 20, 30, 40};
    take(0, std::as_bytes(std::span(values)));
  });
  EXPECT_EQ(evaluate_loss(import_model(folder.file("out.onnx"), samples(1)), {{"x", row(1, 1)}}), 50);
  save_text(folder.file("no.onnx"), branches("c = Constant <value = bool {0}> ()"));
  EXPECT_EQ(evaluate_loss(import_model(folder.file("no.onnx"), samples(1)), {{"x", row(1, 1)}}), 13);
}

TEST(ControlFlow, BothBranchesAreTrainedWhereTheConditionIsData) {
  TemporaryFolder folder;
  const ImportedModel model = import_model(save_text(folder.file("m.onnx"), branches(kNegative)), samples(1));
  EXPECT_THAT(names(model), UnorderedElementsAre("w#2", "w#3"));
  EXPECT_EQ(evaluate_loss(model, {{"x", row(1, 1)}}), 13);
  EXPECT_EQ(evaluate_loss(model, {{"x", row(-1, -1)}}), -5);
}

TEST(ControlFlow, WeightsInsideAndOutsideOfALoopAreTrained) {
  TemporaryFolder folder;
  const std::string text = kHead + std::string(R"((float[N,2] x) => (float loss) <float[2,2] w = {1, 0, 0, 2}> {
    n = Constant <value = int64 {3}> ()
    y = Loop (n, "", x) <body = step (int64 i, bool on, float[N,2] s) => (bool go, float[N,2] t) <float[2] b = {1, 1}> {
      p = MatMul (s, w)
      t = Add (p, b)
      go = Constant <value = bool {1}> ()
    }>
    loss = ReduceMean <keepdims = 0> (y)
  })");
  const ImportedModel model = import_model(save_text(folder.file("m.onnx"), text), samples(1));
  EXPECT_THAT(names(model), UnorderedElementsAre("w", "b"));
  EXPECT_EQ(evaluate_loss(model, {{"x", row(1, 1)}}), (4 + 15) / 2.0);
}

TEST(ControlFlow, BranchesOfUnequalShapeAreRefused) {
  TemporaryFolder folder;
  std::string text = branches(kNegative);
  text.replace(text.find("ey = MatMul (x, w)"), 18, "s = ReduceMax (x) ey = Mul (s, w)");
  const std::string why = message([&] { import_model(save_text(folder.file("m.onnx"), text), samples(1)); });
  EXPECT_THAT(why, HasSubstr("node 'y' (If, opset 13): its condition depends on the data of the model"));
  EXPECT_THAT(why, HasSubstr("[1,2] in one and float32 [2,2] in the other"));
}

std::string loop(const std::string& trips, const std::string& go) {
  return kHead + std::string("(float[N,2] x, int64 k) => (float loss) <float[2] w = {1, 2}> {\n") + trips + R"(
    y = Loop (n, "", x) <body = step (int64 i, bool on, float[N,2] s) => (bool go, float[N,2] t) { t = Mul (s, w) )" +
         go + R"( }>
    loss = ReduceMean <keepdims = 0> (y)
  })";
}

TEST(ControlFlow, ALoopOfUnknownLengthIsRefused) {
  TemporaryFolder folder;
  const auto refusal = [&](const std::string& trips, const std::string& go) {
    return message([&] { import_model(save_text(folder.file("m.onnx"), loop(trips, go)), samples(1)); });
  };
  EXPECT_THAT(refusal("n = Identity (k)", "go = Identity (on)"),
              HasSubstr("node 'y' (Loop, opset 13): its number of repetitions depends on the data of the model"));
  EXPECT_THAT(refusal("n = Constant <value = int64 {3}> ()", "z = ReduceMax <keepdims = 0> (s) go = Less (z, z)"),
              HasSubstr("whether it goes on depends on the data of the model"));
  EXPECT_THAT(refusal("n = Constant <value = int64 {1000000000}> ()", "go = Identity (on)"),
              HasSubstr("unrolling it gives more than 100000 nodes"));
}

TEST(ControlFlow, AnInitialStateOfZerosIsNoWeight) {
  TemporaryFolder folder;
  const std::string text = kHead + std::string(R"((float[3,1,2] x) => (float loss)
      <float[1,2,2] w = {1, 2, 3, 4}, float[1,2,2] r = {1, 0, 0, 1}, float[1,1,2] h = {0, 0}> {
    y = RNN <hidden_size = 2> (x, w, r, "", "", h)
    loss = ReduceMean <keepdims = 0> (y)
  })");
  ImportOptions options = samples(1);
  options.sample_axes["x"] = 1;
  save_text(folder.file("m.onnx"), text);
  EXPECT_THAT(names(import_model(folder.file("m.onnx"), options)), UnorderedElementsAre("w", "r"));
  options.train = {"^h$"};
  EXPECT_THAT(names(import_model(folder.file("m.onnx"), options)), UnorderedElementsAre("w", "r", "h"));
}

}  // namespace
}  // namespace zeroplan
