// `zeroplan predict`: outputs of parts of the samples are put together only where that is the output of all of them.
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/npy.h"
#include "base/temporary_folder.h"
#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_model.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// One model of one input and one output, on `samples` of five numbers.
class PredictSamples : public testing::Test {
 protected:
  static constexpr int64_t kSamples = 4, kWidth = 5;

  TinyModel open(TinyDim samples) const {
    TinyModel model;
    model.input("x", DType::f32, {std::move(samples), kWidth});
    return model;
  }
  Outcome predict(const TinyModel& model, const HostTensor& x, const std::string& options = "") const {
    model.save(folder_.file("model.onnx"));
    write_npy(folder_.file("x.npy"), x);
    return run_command(
        fmt::format("{} predict {} --data {} -o {} {}", kProgram, folder_.file("model.onnx"), folder_.path(), out_.path(), options));
  }
  HostTensor output() const { return NpyFile(out_.file("y.npy")).tensor(); }

  TemporaryFolder folder_, out_;
  const HostTensor x_ = random_tensor({kSamples, kWidth}, 3);
};

// y = x[first:last]
TinyModel rows(TinyModel model, int64_t first, int64_t last) {
  model.ints("first", {first}).ints("last", {last}).ints("axis", {0});
  model.node("Slice", {"x", "first", "last", "axis"}, {"y"}).output("y", {"M", 5});
  return model;
}

TEST_F(PredictSamples, ASliceOfSamplesNeedsThemInOneBatch) {
  for (const auto& [first, last] : {std::pair(1, 3), std::pair(0, 1), std::pair(0, 2)}) {
    const TinyModel model = rows(open("N"), first, last);
    for (const char* batch : {"", "--batch 2", "--batch 8 --micro-batches 1"})
      EXPECT_THAT(predict(model, x_, batch).output, HasSubstr("'y' has no sample axis, so that 4 samples")) << first << batch;
    ASSERT_EQ(predict(model, x_, "--batch 4 --micro-batches 1").code, 0);
    const HostTensor y = output();
    ASSERT_EQ(y.shape(), (Shape{last - first, kWidth}));
    for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.get(i), x_.get(first * kWidth + i));
  }
}

TEST_F(PredictSamples, MoreThanTheSamplesIsNotCut) {
  TinyModel model = open("N");
  model.node("Concat", {"x", "x"}, {"y"}, {{"axis", int64_t{0}}}).output("y", {"M", 5});
  EXPECT_THAT(predict(model, x_).output, AllOf(HasSubstr("'y' has no sample axis"), HasSubstr("--batch 4 --micro-batches 1")));
  ASSERT_EQ(predict(model, x_, "--batch 4").code, 0);
  const HostTensor y = output();
  ASSERT_EQ(y.shape(), (Shape{2 * kSamples, kWidth}));
  for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(y.get(i), x_.get(i % x_.count()));
}

// One sample and a table of three rows are three.
TEST_F(PredictSamples, OneSampleThatIsBroadcastIsNotCut) {
  const HostTensor x = random_tensor({1, kWidth}, 3), table = random_tensor({3, kWidth}, 4);
  for (const TinyDim& samples : {TinyDim(1), TinyDim("N")}) {
    TinyModel model = open(samples);
    model.constant("table", table).node("Add", {"x", "table"}, {"y"}).output("y", {3, 5});
    ASSERT_EQ(predict(model, x).code, 0);
    const HostTensor y = output();
    ASSERT_EQ(y.shape(), table.shape());
    for (int64_t i = 0; i < y.count(); ++i) EXPECT_FLOAT_EQ(y.get(i), x.get(i % kWidth) + table.get(i));
    EXPECT_THAT(predict(model, x_).output, HasSubstr("'y' has no sample axis"));
  }
}

// y = x over the number of samples
TEST_F(PredictSamples, TheNumberOfSamplesIsThatOfOneBatch) {
  TinyModel model = open("N");
  model.node("Shape", {"x"}, {"shape"}).ints("zero", {0}).node("Gather", {"shape", "zero"}, {"samples"});
  model.node("Cast", {"samples"}, {"divisor"}, {{"to", int64_t{1}}}).node("Div", {"x", "divisor"}, {"y"}).output("y", {"N", 5});
  for (const char* batch : {"", "--batch 2", "--batch 4 --micro-batches 2", "--batch 8 --micro-batches 1"})
    EXPECT_THAT(predict(model, x_, batch).output, HasSubstr("'y' has no sample axis")) << batch;
  ASSERT_EQ(predict(model, x_, "--batch 4").code, 0);
  for (int64_t i = 0; i < x_.count(); ++i) EXPECT_FLOAT_EQ(output().get(i), x_.get(i) / 4);
}

// One sample alone could lie on either axis of length one.
TEST_F(PredictSamples, TheSampleAxisIsThatOfMoreSamplesThanOne) {
  TinyModel model = open("N");
  model.ints("shape", {1, -1, 5}).node("Reshape", {"x", "shape"}, {"y"}).output("y", {1, "N", 5});
  ASSERT_EQ(predict(model, x_).code, 0);
  EXPECT_EQ(output(), x_.reshaped({1, kSamples, kWidth}));
}

TEST_F(PredictSamples, AnOutputOfAllSamplesIsNotFilledUp) {
  TinyModel model = open("N");
  model.node("ReduceSum", {"x"}, {"y"}, {{"keepdims", int64_t{0}}}).output("y", {});
  EXPECT_THAT(predict(model, x_, "--batch 8 --micro-batches 1").output, HasSubstr("4 samples in pieces of 8"));
}

TEST_F(PredictSamples, InputsWithoutSamplesAreOneBatch) {
  TinyModel model = open(1);
  model.weight("w", {kWidth}, {1, 2, 3, 4, 5}).node("Mul", {"x", "w"}, {"y"}).output("y", {1, 5});
  const HostTensor x = random_tensor({1, kWidth}, 3);
  ASSERT_EQ(predict(model, x, "--sample-axis x=none").code, 0);
  for (int64_t i = 0; i < kWidth; ++i) EXPECT_FLOAT_EQ(output().get(i), x.get(i) * (i + 1));
}

TEST_F(PredictSamples, AnOutputOfNoInputIsOneBatch) {
  TinyModel model = open("N");
  model.node("Shape", {"x"}, {"y"}, {{"start", int64_t{1}}}).output("y", {1});
  ASSERT_EQ(predict(model, x_).code, 0);
  EXPECT_EQ(output(), HostTensor::of<int64_t>(DType::i64, {1}, {kWidth}));
}

TEST_F(PredictSamples, ANumberOfSamplesThatNoDataTellsIsStated) {
  TinyModel model = open("N");
  model.node("Shape", {"x"}, {"y"}).output("y", {2});
  for (const char* batch : {"", "--batch 4 --micro-batches 2"})
    EXPECT_THAT(predict(model, x_, batch).output, HasSubstr("output 'y' is made of the number of samples")) << batch;
  ASSERT_EQ(predict(model, x_, "--batch 4 --micro-batches 1").code, 0);
  EXPECT_EQ(output(), HostTensor::of<int64_t>(DType::i64, {2}, {kSamples, kWidth}));
}

}  // namespace
}  // namespace zeroplan
