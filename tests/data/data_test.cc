#include "runtime/data/data_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "base/host_tensor.h"
#include "base/temporary_folder.h"
#include "tests/data/npy_writer.h"
#include "tests/error_of.h"

namespace zeroplan {
namespace {

using test::npy_bytes;
using test::raw;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DataTest : public ::testing::Test {
 protected:
  PlanInput& input(const std::string& name, DType dtype, Shape shape, int sample_axis = 0) {
    PlanInput in;
    in.name = name;
    in.dtype = dtype;
    in.shape = std::move(shape);
    in.sample_axis = sample_axis;
    plan.inputs.push_back(in);
    return plan.inputs.back();
  }
  void put(const std::string& name, const std::string& bytes) { write_file(folder + "/" + name + ".npy", bytes); }
  HostTensor read(const DataSource& source, int index, int64_t first, int64_t count, const int64_t* order = nullptr) {
    HostTensor out(plan.inputs[index].dtype, plan.inputs[index].shape);
    source.read(index, first, count, order, out.view());
    return out;
  }

  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  Plan plan;
};

TEST_F(DataTest, SamplesInOrderAndShuffled) {
  input("x", DType::f32, {2, 3});
  std::vector<float> values(15);
  std::iota(values.begin(), values.end(), 0.5f);
  put("x", npy_bytes("<f4", "(5, 3)", raw(values)));
  auto source = open_npy_folder(folder, plan);
  EXPECT_EQ(source->samples(), 5);
  EXPECT_EQ(read(*source, 0, 3, 2), HostTensor::of<double>(DType::f32, {2, 3}, {9.5, 10.5, 11.5, 12.5, 13.5, 14.5}));
  const std::vector<int64_t> order = {4, 0, 2, 1, 3};
  EXPECT_EQ(read(*source, 0, 1, 2, order.data()), HostTensor::of<double>(DType::f32, {2, 3}, {0.5, 1.5, 2.5, 6.5, 7.5, 8.5}));
}

// TensorFlow and Paddle call values a/b:0: one folder holds the files of all.
TEST_F(DataTest, ANameWithASlashIsAFileOfTheFolder) {
  input("/serving/x:0", DType::f32, {1});
  put("_serving_x:0", npy_bytes("<f4", "(2,)", raw<float>({1.5, 2.5})));
  EXPECT_EQ(read(*open_npy_folder(folder, plan), 0, 1, 1).get(0), 2.5);
  input("/serving_x:0", DType::f32, {1});
  EXPECT_THAT(error_of([&] { open_npy_folder(folder, plan); }),
              HasSubstr("/serving/x:0 and /serving_x:0 would both be read from _serving_x:0.npy"));
}

TEST_F(DataTest, EveryVersionIsRead) {
  input("x", DType::f64, {1});
  for (int version : {1, 2, 3}) {
    put("x", npy_bytes("<f8", "(2,)", raw<double>({1.25, -3}), version));
    EXPECT_EQ(read(*open_npy_folder(folder, plan), 0, 1, 1).get(0), -3);
  }
  put("x", npy_bytes("<f8", "(2,)", raw<double>({1.25, -3}), 4));
  EXPECT_THAT(error_of([&] { open_npy_folder(folder, plan); }), HasSubstr("version 4"));
}

TEST_F(DataTest, TypesAreConvertedWhereExact) {
  input("a", DType::f32, {2});
  input("b", DType::f64, {2});
  input("c", DType::i64, {2});
  input("d", DType::i32, {2});
  input("e", DType::boolean, {2});
  put("a", npy_bytes("<f8", "(2,)", raw<double>({0.5, 0.1})));
  put("b", npy_bytes("<f4", "(2,)", raw<float>({0.5f, 0.1f})));
  put("c", npy_bytes("|i1", "(2,)", raw<int8_t>({-7, 9})));
  put("d", npy_bytes("<i8", "(2,)", raw<int64_t>({-70000, 9})));
  put("e", npy_bytes("|b1", "(2,)", raw<uint8_t>({0, 1})));
  auto source = open_npy_folder(folder, plan);
  EXPECT_EQ(read(*source, 0, 0, 2), HostTensor::of<double>(DType::f32, {2}, {0.5, 0.1}));
  EXPECT_EQ(read(*source, 1, 0, 2).get(1), static_cast<double>(0.1f));
  EXPECT_EQ(read(*source, 2, 0, 2).to_ints(), (std::vector<int64_t>{-7, 9}));
  EXPECT_EQ(read(*source, 3, 0, 2).to_ints(), (std::vector<int64_t>{-70000, 9}));
  EXPECT_EQ(read(*source, 4, 0, 2).to_ints(), (std::vector<int64_t>{0, 1}));
  put("d", npy_bytes("<u8", "(2,)", raw<uint64_t>({5, uint64_t{1} << 31})));
  source = open_npy_folder(folder, plan);
  EXPECT_THAT(error_of([&] { read(*source, 3, 0, 2); }),
              AllOf(HasSubstr("d.npy: input d, sample 1"), HasSubstr("2147483648 does not fit int32")));
}

TEST_F(DataTest, AnotherSampleAxisAndInputsGivenWhole) {
  input("x", DType::i64, {2, 3, 2}, 1);  // samples in the middle
  input("mask", DType::f32, {2}, -1);
  std::vector<int64_t> values(4 * 4);
  std::iota(values.begin(), values.end(), 0);
  put("x", npy_bytes("<i8", "(4, 2, 2)", raw(values)));
  put("mask", npy_bytes("<f4", "(2,)", raw<float>({3, 4})));
  auto source = open_npy_folder(folder, plan);
  EXPECT_EQ(source->samples(), 4);
  EXPECT_EQ(read(*source, 0, 1, 3).to_ints(), (std::vector<int64_t>{4, 5, 8, 9, 12, 13, 6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(read(*source, 1, 1, 3), HostTensor::of<int>(DType::f32, {2}, {3, 4}));
}

TEST_F(DataTest, ScalarsPerSample) {
  PlanInput& labels = input("labels", DType::i64, {3});
  labels.label = true;
  labels.limit = 10;
  put("labels", npy_bytes("<i2", "(4,)", raw<int16_t>({1, 2, 3, 4})));
  EXPECT_EQ(read(*open_npy_folder(folder, plan), 0, 1, 3).to_ints(), (std::vector<int64_t>{2, 3, 4}));
}

TEST_F(DataTest, LabelsOutOfRangeAreNamed) {
  PlanInput& labels = input("labels", DType::i64, {2, 2});
  labels.label = true;
  labels.limit = 10;
  labels.has_ignored = true;
  labels.ignored = -100;
  put("labels", npy_bytes("<i8", "(3, 2)", raw<int64_t>({0, 9, -100, 3, 4, 10})));
  auto source = open_npy_folder(folder, plan);
  EXPECT_EQ(read(*source, 0, 0, 2).to_ints(), (std::vector<int64_t>{0, 9, -100, 3}));
  EXPECT_THAT(error_of([&] { read(*source, 0, 1, 2); }),
              AllOf(HasSubstr(folder + "/labels.npy: input labels, sample 2"), HasSubstr("label out of range: 10 is not in [0, 10)")));
}

TEST_F(DataTest, IndicesMayCountFromTheEnd) {
  PlanInput& tokens = input("tokens", DType::i64, {1});
  tokens.limit = 5;
  put("tokens", npy_bytes("<i8", "(4,)", raw<int64_t>({4, -5, -6, 5})));
  auto source = open_npy_folder(folder, plan);
  EXPECT_EQ(read(*source, 0, 1, 1).to_ints(), std::vector<int64_t>{-5});
  EXPECT_THAT(error_of([&] { read(*source, 0, 2, 1); }), HasSubstr("index -6 out of range [-5, 5)"));
  EXPECT_THAT(error_of([&] { read(*source, 0, 3, 1); }), HasSubstr("sample 3: index 5"));
  EXPECT_THAT(error_of([&] { read(*source, 0, 4, 1); }), HasSubstr("sample 4 of 4"));
}

TEST_F(DataTest, AllProblemsAtOnce) {
  input("x", DType::f32, {2, 3});
  input("y", DType::i64, {2});
  input("z", DType::f32, {2});
  input("w", DType::f32, {2});
  put("x", npy_bytes("<f4", "(5, 4)", raw(std::vector<float>(20))));
  put("y", npy_bytes("<f4", "(5,)", raw(std::vector<float>(5))));
  put("w", npy_bytes("<f4", "(6,)", raw(std::vector<float>(6))));
  EXPECT_THAT(
      error_of([&] { open_npy_folder(folder, plan); }),
      AllOf(HasSubstr("x.npy has shape [5,4], expected [samples,3]"), HasSubstr("y.npy holds float32"), HasSubstr("z.npy is missing"),
            HasSubstr("the folder has w.npy, x.npy, y.npy"), HasSubstr("w.npy has 6 samples, x.npy has 5")));
  EXPECT_THAT(error_of([&] { open_npy_folder(folder + "/none", plan); }), HasSubstr("does not exist"));
}

TEST_F(DataTest, DamagedFilesAreRefused) {
  input("x", DType::f32, {1, 2});
  const std::string good = npy_bytes("<f4", "(1, 2)", raw<float>({1, 2}));
  const std::pair<std::string, std::string> cases[] = {
      {"hello", "is not a .npy file"},
      {good.substr(0, 40), "ends within its header"},
      {good.substr(0, good.size() - 1), "needs 8 bytes, the file holds 7"},
      {npy_bytes("<f4", "(4611686018427387904, 2)", ""), "x.npy"},
      {npy_bytes("<f4", "(99999999999999999999, 2)", ""),
       "input x: " + folder + "/x.npy: the shape (99999999999999999999, 2) in its header"},
      {npy_bytes(">f4", "(1, 2)", raw<float>({1, 2})), "big-endian"},
      {npy_bytes("<c8", "(1, 2)", raw<double>({1, 2})), "'<c8' is not supported"},
      {npy_bytes("<f4", "(1, 2)", raw<float>({1, 2}), 1, true), "Fortran order"},
      {npy_bytes("<f4", "(1, x)", raw<float>({1, 2})), "damaged"},
      {"", "is not a .npy file"},
  };
  for (const auto& [bytes, message] : cases) {
    put("x", bytes);
    EXPECT_THAT(error_of([&] { open_npy_folder(folder, plan); }), HasSubstr(message));
  }
  put("x", good);
  EXPECT_EQ(open_npy_folder(folder, plan)->samples(), 1);
}

TEST_F(DataTest, TokensAreCutIntoWindows) {
  PlanInput& tokens = input("tokens", DType::i64, {2, 4});
  tokens.limit = 256;
  PlanInput& labels = input("labels", DType::i64, {2, 4});
  labels.label = true;
  labels.limit = 20;
  std::string bytes;
  for (char c = 0; c < 19; ++c) bytes += c;
  write_file(folder + "/tokens", bytes);
  auto source = open_tokens(folder + "/tokens", 1, plan);
  EXPECT_EQ(source->samples(), 4);
  EXPECT_EQ(read(*source, 0, 1, 2).to_ints(), (std::vector<int64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(read(*source, 1, 1, 2).to_ints(), (std::vector<int64_t>{5, 6, 7, 8, 9, 10, 11, 12}));
  auto second_half = open_tokens(folder + "/tokens", 1, plan, 0.5, 1);
  EXPECT_EQ(second_half->samples(), 2);
  EXPECT_EQ(read(*second_half, 0, 0, 2).to_ints()[0], 9);
  EXPECT_THAT(error_of([&] { open_tokens(folder + "/tokens", 2, plan); }), HasSubstr("19 bytes cannot be cut into tokens of 2 bytes"));
  EXPECT_THAT(error_of([&] { open_tokens(folder + "/tokens", 3, plan); }), HasSubstr("3 bytes per token"));
  EXPECT_THAT(error_of([&] { open_tokens(folder + "/tokens", 1, plan, 0.9, 1); }), HasSubstr("no window of 4 tokens"));
}

TEST_F(DataTest, SixteenBitTokensAndTheirRange) {
  input("tokens", DType::i32, {1, 2}).limit = 1000;
  write_file(folder + "/tokens", raw<uint16_t>({1, 999, 1000, 3, 4}));
  auto source = open_tokens(folder + "/tokens", 2, plan);
  EXPECT_EQ(source->samples(), 2);
  EXPECT_EQ(read(*source, 0, 0, 1).to_ints(), (std::vector<int64_t>{1, 999}));
  EXPECT_THAT(error_of([&] { read(*source, 0, 1, 1); }), HasSubstr(folder + "/tokens: input tokens, sample 1: index 1000 out of range"));
}

TEST_F(DataTest, TokensNeedAFittingPlan) {
  input("tokens", DType::i64, {1, 2});
  input("mask", DType::f32, {2, 2}, -1);
  write_file(folder + "/tokens", std::string(50, '\1'));
  EXPECT_THAT(error_of([&] { open_tokens(folder + "/tokens", 1, plan); }),
              AllOf(HasSubstr(folder + "/tokens"), HasSubstr("input mask float32 [2,2] is neither tokens nor next tokens")));
}

TEST_F(DataTest, SyntheticDataDependsOnSeedAndSampleOnly) {
  input("x", DType::f32, {2, 8});
  PlanInput& labels = input("labels", DType::i64, {2});
  labels.label = true;
  labels.limit = 3;
  auto a = make_synthetic(plan, 1), b = make_synthetic(plan, 2);
  EXPECT_EQ(read(*a, 0, 5, 2), read(*a, 0, 5, 2));
  EXPECT_FALSE(read(*a, 0, 5, 2) == read(*b, 0, 5, 2));
  EXPECT_FALSE(read(*a, 0, 5, 2) == read(*a, 0, 6, 2));
  const HostTensor first = read(*a, 0, 5, 2), second = read(*a, 0, 6, 2);
  EXPECT_EQ(first.get(8), second.get(0));  // sample 6 in both
  for (int64_t s = 0; s < 50; ++s)
    for (int64_t label : read(*a, 1, s, 2).to_ints()) EXPECT_TRUE(label >= 0 && label < 3);
}

}  // namespace
}  // namespace zeroplan
