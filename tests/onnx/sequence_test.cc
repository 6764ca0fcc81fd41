// Sequences and optionals, which are lists of values at import: what they hold, and what of them is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Lists = std::map<std::string, std::vector<double>>;

ImportedModel imported(const std::string& signature, const std::string& nodes, const ImportOptions& options) {
  const TemporaryFolder folder;
  return import_model(
      save_text(folder.file("m.onnx"), "<ir_version: 9, opset_import: [\"\" : 18]>\ncase " + signature + " {\n" + nodes + "}"), options);
}

ImportOptions wanting(const std::vector<std::string>& outputs, const std::map<std::string, HostTensor>& bind = {}) {
  ImportOptions options;
  options.outputs = outputs;
  options.bind = bind;
  return options;
}

// All outputs for x = 0, 1, 2, … [5,2]; what is wanted is y where it is not said.
Lists outputs(const std::string& nodes, const std::string& result = "float y", std::vector<std::string> wanted = {"y"}) {
  const ImportedModel model = imported("(float[5,2] x) => (" + result + ")", nodes, wanting(wanted));
  std::map<ValueId, HostTensor> values;
  for (const ImportedInput& input : model.inputs) {
    HostTensor x(DType::f32, {5, 2});
    for (int64_t i = 0; i < x.count(); ++i) x.set(i, static_cast<double>(i));
    values[input.value] = x;
  }
  evaluate_program(model.graph, Program::micro_step, values);
  Lists lists;
  for (const ImportedOutput& output : model.outputs) {
    const Value& value = model.graph.value(output.value);
    const HostTensor& y = value.kind == ValueKind::constant ? value.constant : values.at(output.value);
    for (int64_t i = 0; i < y.count(); ++i) lists[output.name].push_back(y.get(i));
  }
  return lists;
}

std::vector<double> y_of(const std::string& nodes) { return outputs(nodes).at("y"); }

// a, b: rows 0 and 1 of x.
constexpr char kRows[] = R"(
  s = SplitToSequence <axis = 0, keepdims = 0> (x)
  zero = Constant <value = int64 {0}> () one = Constant <value = int64 {1}> () two = Constant <value = int64 {2}> ()
  last = Constant <value = int64 {-1}> ()
  a = SequenceAt (s, zero) b = SequenceAt (s, one)
)";

TEST(Sequences, AreSplitReadChangedAndJoined) {
  EXPECT_THAT(y_of(std::string(kRows) + "y = SequenceAt (s, last)"), ElementsAre(8, 9));
  EXPECT_THAT(y_of(std::string(kRows) + "t = SequenceConstruct (a, b, a) y = ConcatFromSequence <axis = 0> (t)"),
              ElementsAre(0, 1, 2, 3, 0, 1));
  EXPECT_THAT(y_of(std::string(kRows) + "t = SequenceConstruct (a, b) y = ConcatFromSequence <axis = 1, new_axis = 1> (t)"),
              ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(y_of(std::string(kRows) + "t = SequenceErase (s, one) u = SequenceErase (t) y = ConcatFromSequence <axis = 0> (u)"),
              ElementsAre(0, 1, 4, 5, 6, 7));
  EXPECT_THAT(
      y_of(std::string(kRows) + "e = SequenceEmpty () t = SequenceInsert (e, a) u = SequenceInsert (t, b, zero)"
                                "v = SequenceInsert (u, a, two) w = SequenceInsert (v, b, last) y = ConcatFromSequence <axis = 0> (w)"),
      ElementsAre(2, 3, 0, 1, 2, 3, 0, 1));
  EXPECT_THAT(y_of(std::string(kRows) + "y = SequenceLength (s)"), ElementsAre(5));
}

TEST(Sequences, AreSplitByOneLengthOrByALengthEach) {
  const std::string at = "one = Constant <value = int64 {1}> () last = Constant <value = int64 {-1}> ()";
  EXPECT_THAT(y_of(at + "n = Constant <value = int64 {2}> () s = SplitToSequence <axis = 0> (x, n) y = SequenceAt (s, last)"),
              ElementsAre(8, 9));
  EXPECT_THAT(y_of(at + "n = Constant <value = int64[2] {4, 1}> () s = SplitToSequence <axis = 0> (x, n) y = SequenceAt (s, one)"),
              ElementsAre(8, 9));
  EXPECT_THAT(y_of(at + "s = SplitToSequence <axis = 1> (x) y = SequenceAt (s, one)"), ElementsAre(1, 3, 5, 7, 9));
}

TEST(Sequences, OfAModelAreOutputsOneByOne) {
  const Lists lists = outputs(std::string(kRows) + "y = SequenceConstruct (a, b)", "seq(float[2]) y");
  EXPECT_EQ(lists.size(), 2u);
  EXPECT_THAT(lists.at("y[0]"), ElementsAre(0, 1));
  EXPECT_THAT(lists.at("y[1]"), ElementsAre(2, 3));
}

TEST(Sequences, PassThroughIdentityIfLoopAndMap) {
  const std::string shared = std::string(kRows) + "p = SequenceConstruct (a, b) q = SequenceConstruct (b, a)";
  EXPECT_THAT(y_of(shared + "r = Identity (q) y = SequenceAt (r, zero)"), ElementsAre(2, 3));
  const std::string choice =
      "r = If (c) <then_branch = t () => (seq(float[2]) tr) { tr = Identity (p) },"
      " else_branch = e () => (seq(float[2]) er) { er = Identity (q) }> y = SequenceAt (r, zero)";
  EXPECT_THAT(y_of(shared + "c = Constant <value = bool {1}> ()" + choice), ElementsAre(0, 1));
  EXPECT_THAT(
      y_of(shared + "sum = ReduceSum <keepdims = 0> (x) limit = Constant <value = float {100}> () c = Greater (sum, limit)" + choice),
      ElementsAre(2, 3));
  EXPECT_THAT(
      y_of(std::string(kRows) + "n = Constant <value = int64 {3}> () e = SequenceEmpty () go = Constant <value = bool {1}> ()"
                                "r = Loop (n, go, e) <body = l (int64 i, bool on, seq(float[2]) have) => (bool more, seq(float[2]) got) {"
                                " row = SequenceAt (s, i) got = SequenceInsert (have, row) more = Identity (on) }>"
                                "y = ConcatFromSequence <axis = 0> (r)"),
      ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(y_of(shared + "r = SequenceMap (p, q, b) <body = m (float[2] u, float[2] v, float[2] w) => (float[2] z) {"
                            " d = Sub (u, v) z = Mul (d, w) }> y = ConcatFromSequence <axis = 0> (r)"),
              ElementsAre(-4, -6, 4, 6));
}

TEST(Sequences, OptionalsAreThereOrNot) {
  EXPECT_THAT(y_of("o = Optional (x) y = OptionalHasElement (o)"), ElementsAre(1));
  EXPECT_THAT(y_of("y = OptionalHasElement ()"), ElementsAre(0));
  EXPECT_THAT(y_of(std::string(kRows) + "o = Optional (a) y = OptionalGetElement (o)"), ElementsAre(0, 1));
  EXPECT_THAT(y_of(std::string(kRows) + "o = Optional (s) t = OptionalGetElement (o) y = SequenceAt (t, one)"), ElementsAre(2, 3));
}

TEST(Sequences, GivenAsInputsAreBoundItemByItem) {
  const std::string nodes = "one = Constant <value = int64 {1}> () b = SequenceAt (s, one) y = Add (b, x)";
  const auto bound = [&](const std::map<std::string, HostTensor>& bind) {
    const ImportedModel model = imported("(float[2] x, seq(float[2]) s) => (float[2] y)", nodes, wanting({"y"}, bind));
    std::map<ValueId, HostTensor> values = {{model.inputs.at(0).value, HostTensor::of<float>(DType::f32, {2}, {10, 20})}};
    evaluate_program(model.graph, Program::micro_step, values);
    const HostTensor& y = values.at(model.outputs.at(0).value);
    return std::vector<double>{y.get(0), y.get(1)};
  };
  EXPECT_THAT(bound({{"s", HostTensor::of<float>(DType::f32, {2, 2}, {1, 2, 3, 4})}}), ElementsAre(13, 24));
  const HostTensor first = HostTensor::of<float>(DType::f32, {1}, {1}), second = HostTensor::of<float>(DType::f32, {2}, {5, 6});
  EXPECT_THAT(bound({{"s[0]", first}, {"s[1]", second}}), ElementsAre(15, 26));
  EXPECT_THAT(message([&] { bound({}); }),
              HasSubstr("input 's' is a sequence, which must be known when the model is compiled; state its items"));
}

TEST(Sequences, WhatIsNotKnownAtImportIsRefused) {
  const auto refusal = [](const std::string& nodes) { return message([&] { outputs(std::string(kRows) + nodes); }); };
  EXPECT_THAT(refusal("n = ReduceMax <keepdims = 0> (x) i = Cast <to = 7> (n) y = SequenceAt (s, i)"),
              HasSubstr("its position depends on the data"));
  EXPECT_THAT(refusal("y = Relu (s)"), HasSubstr("it is given a sequence or an optional, but takes tensors alone"));
  EXPECT_THAT(refusal("y = SequenceAt (a, zero)"), HasSubstr("where it takes a sequence"));
  EXPECT_THAT(refusal("six = Constant <value = int64 {5}> () y = SequenceAt (s, six)"),
              HasSubstr("position 5 is outside its sequence of 5"));
  EXPECT_THAT(refusal("e = SequenceEmpty () y = ConcatFromSequence <axis = 0> (e)"), HasSubstr("its sequence is empty"));
  EXPECT_THAT(message([] { imported("(optional(float[2]) o) => (float[2] y)", "y = OptionalGetElement (o)", wanting({"y"})); }),
              HasSubstr("its optional has no value"));
  EXPECT_THAT(refusal("n = Constant <value = int64[2] {4, 2}> () t = SplitToSequence <axis = 0> (x, n) y = SequenceAt (t, zero)"),
              HasSubstr("do not add up to 5"));
}

// The rows of a weight, taken apart and put together again.
TEST(Sequences, WeightsAreTrainedThroughThem) {
  const ImportedModel model = imported("(float[N,2] x) => (float loss) <float[2,2] w = {1, 2, 3, 4}>", R"(
    s = SplitToSequence <axis = 0> (w) one = Constant <value = int64 {1}> () b = SequenceAt (s, one)
    y = Mul (x, b) loss = ReduceMean <keepdims = 0> (y))",
                                       samples(1));
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  EXPECT_TRUE(model.graph.parameters[0].trainable);
}

}  // namespace
}  // namespace zeroplan
