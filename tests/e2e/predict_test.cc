// `zeroplan predict`, `--bind` and `zeroplan doctor`.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/npy.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_model.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSamples = 7, kWidth = 3;

// y = x · w (N, 3), total = the sum of y over everything; `rate` scales w where it is a graph input.
class Predict : public testing::Test {
 protected:
  Predict() : x_(random_tensor({kSamples, kWidth}, 3)) {
    TinyModel model;
    model.input("x", DType::f32, {"N", static_cast<int>(kWidth)}).input("rate", DType::i64, {}).weight("w", {kWidth}, {1, -2, 0.5});
    model.ints("known", {2});
    model.node("Equal", {"rate", "known"}, {"doubled"});
    model.node("Mul", {"x", "w"}, {"once"}).node("Add", {"once", "once"}, {"twice"});
    model.node("Where", {"doubled", "twice", "once"}, {"y"}).node("ReduceSum", {"y"}, {"total"}, {{"keepdims", int64_t{0}}});
    model.output("y", {"N", static_cast<int>(kWidth)}).output("total", {});
    model.save(file("model.onnx"));
    write_npy(file("x.npy"), x_);
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  Outcome predict(const std::string& options) const {
    return run_command(
        fmt::format("{} predict {} --data {} -o {} --bind rate=2 {}", kProgram, file("model.onnx"), folder_.path(), out_.path(), options));
  }
  double expected(int64_t i) const {
    constexpr double w[] = {1, -2, 0.5};
    return 2 * x_.get(i) * w[i % kWidth];
  }

  TemporaryFolder folder_, out_;
  HostTensor x_;
};

TEST_F(Predict, JoinsTheBatchesOfAllRanksTheLastOneShort) {
  for (const char* options :
       {"--ranks 1 --batch 7 --micro-batches 1", "--ranks 2 --batch 4", "--ranks 1 --batch 6 --micro-batches 3", "--ranks 3 --batch 3"}) {
    const Outcome outcome = predict(fmt::format("--output y {}", options));
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    const HostTensor y = NpyFile(out_.file("y.npy")).tensor();
    ASSERT_EQ(y.shape(), (Shape{kSamples, kWidth})) << options;
    for (int64_t i = 0; i < y.count(); ++i) EXPECT_NEAR(y.get(i), expected(i), 1e-6) << options;
    EXPECT_FALSE(std::filesystem::exists(out_.file("total.npy")));
  }
}

TEST_F(Predict, AnOutputOfAllSamplesNeedsThemInOneBatch) {
  EXPECT_THAT(predict("--batch 2").output, AllOf(HasSubstr("'total' has no sample axis"), HasSubstr("7 samples")));
  ASSERT_EQ(predict("--batch 7 --micro-batches 1").code, 0);
  double sum = 0;
  for (int64_t i = 0; i < kSamples * kWidth; ++i) sum += expected(i);
  EXPECT_NEAR(NpyFile(out_.file("total.npy")).tensor().get(0), sum, 1e-5);
}

// The file's name has no folder in it.
TEST_F(Predict, AnOutputNamedWithASlashIsAFileOfTheFolder) {
  TinyModel model;
  model.input("a/x", DType::f32, {"N", 2})
      .weight("w", {2}, {1, 2})
      .node("Mul", {"a/x", "w"}, {"/scale:0"})
      .node("Add", {"a/x", "w"}, {"_scale:0"});
  model.output("/scale:0", {"N", 2}).output("_scale:0", {"N", 2}).save(file("slash.onnx"));
  write_npy(file("a_x.npy"), random_tensor({3, 2}, 4));
  const std::string command = fmt::format("{} predict {} --data {} -o {}", kProgram, file("slash.onnx"), folder_.path(), out_.path());
  EXPECT_THAT(run_command(command).output, HasSubstr("name the same file"));
  const Outcome outcome = run_command(command + " --output /scale:0");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NEAR(NpyFile(out_.file("_scale:0.npy")).tensor().get(1), 2 * random_tensor({3, 2}, 4).get(1), 1e-6);
}

// x, split into its columns: a sequence.
void save_columns(const std::string& path, const char* input) {
  TinyModel model;
  model.input(input, DType::f32, {"N", 2}).weight("w", {2}, {1, 2}).node("Mul", {input, "w"}, {"y"});
  model.node("SplitToSequence", {"y"}, {"s"}, {{"axis", int64_t{1}}}).output("y", {"N", 2}).output("s", {"N", 1});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).output("loss", {}).save(path);
}

TEST_F(Predict, AnItemOfASequenceOverwritesNoData) {
  save_columns(file("columns.onnx"), "s[0]");
  const HostTensor x = random_tensor({3, 2}, 4);
  write_npy(file("s[0].npy"), x);
  const std::string command =
      fmt::format("{} predict {} --data {} --batch 3 --micro-batches 1 --output s", kProgram, file("columns.onnx"), folder_.path());
  const Outcome outcome = run_command(fmt::format("{} -o {}", command, folder_.path()));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("the file of output s[0]"), HasSubstr("would overwrite a data file")));
  EXPECT_EQ(NpyFile(file("s[0].npy")).tensor(), x);
  ASSERT_EQ(run_command(fmt::format("{} -o {}", command, out_.path())).code, 0);
  EXPECT_NEAR(NpyFile(out_.file("s[1].npy")).tensor().get(1), 2 * x.get(3), 1e-6);
}

TEST_F(Predict, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(predict("--output z").output, AllOf(HasSubstr("no output 'z'"), HasSubstr("total, y")));
  EXPECT_THAT(predict("--bind other=1").output, HasSubstr("--bind other: the model has no such input"));
  EXPECT_THAT(predict("--bind rate=1,2").output, AllOf(HasSubstr("--bind rate"), HasSubstr("2 values")));
  EXPECT_THAT(predict("--bind x=1").output, HasSubstr("--bind x: 1 value does not fill the input"));
  EXPECT_THAT(predict("--bind x=high").output, HasSubstr("'high' is not a number"));
}

double mean_of(const HostTensor& values) {
  double sum = 0;
  for (int64_t i = 0; i < values.count(); ++i) sum += values.get(i);
  return sum / static_cast<double>(values.count());
}

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    tiny_mlp(2, 4).save(model());
    write_npy(folder_.path() + "/x.npy", random_tensor({8, 4}, 1));
    write_npy(folder_.path() + "/t.npy", random_tensor({8, 4}, 2));
  }
  std::string model() const { return folder_.path() + "/model.onnx"; }
  Outcome doctor(const std::string& options) const {
    return run_command(fmt::format("{} doctor {} --data {} --batch 4 {}", kProgram, model(), folder_.path(), options));
  }
  TemporaryFolder folder_;
};

TEST_F(DoctorTest, ReportsOnAModelThatTrains) {
  const Outcome outcome = doctor("--python /no/such/python");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("40 elements are trained"), HasSubstr("ONNX Runtime is not there"), HasSubstr("nothing found")));
  for (const char* parameter : {"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"})
    EXPECT_THAT(outcome.output, HasSubstr(fmt::format("{}: gradient along a random direction", parameter)));
  EXPECT_THAT(outcome.output, Not(HasSubstr("!")));
}

// x·w + b is 4.8e-7 above the kink of Relu: a longer step crosses it.
TEST_F(DoctorTest, AKinkNearByIsNoFinding) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 1}).weight("w", {1}, {1}).weight("b", {1}, {-0.99999952f});
  model.node("Mul", {"x", "w"}, {"a"}).node("Add", {"a", "b"}, {"c"}).node("Relu", {"c"}, {"d"});
  model.node("ReduceMean", {"d"}, {"loss"}, {{"keepdims", int64_t{0}}}).output("loss", {}).save(this->model());
  write_npy(folder_.path() + "/x.npy", HostTensor::of<float>(DType::f32, {4, 1}, {1, 1, 1, 1}));
  EXPECT_THAT(doctor("--python /no/such/python").output,
              AllOf(HasSubstr("w: gradient along a random direction"), HasSubstr("nothing found")));
}

// A shell script in Python's place, which gives what stands in files as what ONNX Runtime gives: the first output and the first item of
// the second, not the second item.
TEST_F(DoctorTest, ComparesTheItemsOfASequenceThatAreThere) {
  save_columns(model(), "x");
  const HostTensor x = random_tensor({4, 2}, 1);
  HostTensor y(DType::f64, {4, 2}), first(DType::f64, {4, 1});
  for (int64_t i = 0; i < 4; ++i) {
    first.set(i, x.get(2 * i));
    y.set(2 * i, x.get(2 * i));
    y.set(2 * i + 1, 2 * x.get(2 * i + 1));
  }
  write_npy(folder_.path() + "/x.npy", x);
  const TemporaryFolder given;
  write_npy(given.file("0.npy"), y);
  write_npy(given.file("1[0].npy"), first);
  write_npy(given.file("2.npy"), HostTensor::of<double>(DType::f64, {}, {mean_of(y)}));
  const std::string python = folder_.path() + "/python";
  write_file(python, fmt::format("#!/bin/sh\nif [ $# -eq 1 ]; then echo 1.0; else cp {}/*.npy \"$4\"; fi\n", given.path()));
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Outcome outcome = doctor("--python " + python);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("output 'y': differs from ONNX Runtime 1.0 by 0 "),
                                    HasSubstr("output 's[0]': differs from ONNX Runtime 1.0 by 0 "),
                                    HasSubstr("output 's[1]': ONNX Runtime 1.0 gives no such tensor: not compared")));
}

TEST_F(DoctorTest, NamesWhatStandsInTheWay) {
  const Outcome outcome = doctor("--python /no/such/python --loss nothing");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("! "), HasSubstr("nothing"), HasSubstr("finding")));
}

}  // namespace
}  // namespace zeroplan
