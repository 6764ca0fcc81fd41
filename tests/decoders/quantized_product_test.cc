// MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv against loops over their integers.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "tests/conformance/forward.h"
#include "tests/conformance/gradients.h"
#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

HostTensor random_bytes(DType dtype, const Shape& shape, uint64_t seed) {
  HostTensor tensor(dtype, shape);
  SplitMix64 random(seed);
  for (int64_t i = 0; i < tensor.count(); ++i)
    tensor.set_int(i, static_cast<int64_t>(random.next() >> 56) - (dtype == DType::i8 ? 128 : 0));
  return tensor;
}

// Of a and b less their zero points, which hold one number, or one per row of a and per column of b. [M,K] x [K,N]
std::vector<double> sums(const HostTensor& a, const HostTensor& a_zero, const HostTensor& b, const HostTensor& b_zero) {
  const int64_t rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
  std::vector<double> y;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += (a.get_int(i * depth + k) - a_zero.get_int(a_zero.count() > 1 ? i : 0)) *
               (b.get_int(k * columns + j) - b_zero.get_int(b_zero.count() > 1 ? j : 0));
      y.push_back(static_cast<double>(sum));
    }
  return y;
}

double saturated(double number, double low, double high) { return std::min(high, std::max(low, number)); }

TEST(QuantizedProducts, MatMulIntegerWithZeroPointsPerTensorRowAndColumn) {
  for (const DType left : {DType::u8, DType::i8})
    for (const DType right : {DType::u8, DType::i8})
      for (const bool many : {false, true}) {
        const HostTensor a = random_bytes(left, {3, 17}, 1), b = random_bytes(right, {17, 5}, 2);
        const HostTensor a_zero = random_bytes(left, many ? Shape{3} : Shape{}, 3),
                         b_zero = random_bytes(right, many ? Shape{5} : Shape{}, 4);
        OneNode node = OneNode("MatMulInteger").input(a).input(b).input(a_zero).input(b_zero);
        EXPECT_EQ(difference(node.value(), {3, 5}, sums(a, a_zero, b, b_zero), 0), "");
        EXPECT_EQ(difference(node.planned()[0], {3, 5}, sums(a, a_zero, b, b_zero), 0), "");
        EXPECT_EQ(node.value().dtype(), DType::i32);
      }
  const HostTensor a = random_bytes(DType::u8, {2, 4}, 1), b = random_bytes(DType::i8, {4, 2}, 2), none = integers({}, {0});
  EXPECT_EQ(difference(OneNode("MatMulInteger").input(a).input(b).value(), {2, 2}, sums(a, none, b, none), 0), "");
  EXPECT_THAT(OneNode("MatMulInteger").input(a).input(b).input(integers({3}, {1, 2, 3}, DType::u8)).refusal(),
              HasSubstr("zero point of shape [3"));
  EXPECT_THAT(OneNode("MatMulInteger").input(integers({1, 2}, {1, 2})).input(b).refusal(), HasSubstr("input 0 is int64"));
  const HostTensor long_row = integers({1, 40000}, std::vector<int64_t>(40000, 1), DType::u8);
  EXPECT_THAT(OneNode("MatMulInteger").input(long_row).input(long_row.reshaped({40000, 1})).refusal(), HasSubstr("may not fit int32"));
}

TEST(QuantizedProducts, QLinearMatMulRoundsOnceAndSaturates) {
  for (const DType dtype : {DType::u8, DType::i8}) {
    const bool with_sign = dtype == DType::i8;
    const HostTensor a = random_bytes(dtype, {4, 9}, 5), b = random_bytes(dtype, {9, 6}, 6);
    const HostTensor a_zero = random_bytes(dtype, {}, 7), b_zero = random_bytes(dtype, {6}, 8), y_zero = random_bytes(dtype, {}, 9);
    const HostTensor a_scale = reals({}, {0.0125}), b_scale = random_reals({6}, 0.01, 0.05, 10), y_scale = reals({}, {0.75});
    std::vector<double> wanted = sums(a, a_zero, b, b_zero);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double scale = static_cast<float>(0.0125) * b_scale.get(static_cast<int64_t>(i) % 6) / 0.75;
      const double number = std::nearbyint(wanted[i] * scale) + static_cast<double>(y_zero.get_int(0));
      wanted[i] = saturated(number, with_sign ? -128 : 0, with_sign ? 127 : 255);
    }
    OneNode node = OneNode("QLinearMatMul").input(a).input(a_scale).input(a_zero).input(b).input(b_scale).input(b_zero);
    EXPECT_EQ(difference(node.input(y_scale).input(y_zero).value(), {4, 6}, wanted, 0), "");
    EXPECT_EQ(node.value().dtype(), dtype);
  }
}

// x [1,C,H,W], w [M,C,h,w], stride 1 with pads of the zero point.
std::vector<double> window_sums(const HostTensor& x, int64_t x_zero, const HostTensor& w, const HostTensor& w_zero, int64_t pad) {
  const int64_t channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  const int64_t filters = w.shape()[0], rows = w.shape()[2], columns = w.shape()[3];
  std::vector<double> y;
  for (int64_t m = 0; m < filters; ++m)
    for (int64_t top = -pad; top + rows <= height + pad; ++top)
      for (int64_t left = -pad; left + columns <= width + pad; ++left) {
        int64_t sum = 0;
        for (int64_t n = 0; n < channels * rows * columns; ++n) {
          const int64_t c = n / (rows * columns), i = top + n / columns % rows, j = left + n % columns;
          if (i < 0 || j < 0 || i >= height || j >= width) continue;
          const int64_t value = x.get_int((c * height + i) * width + j) - x_zero;
          sum += value * (w.get_int(m * channels * rows * columns + n) - w_zero.get_int(w_zero.count() > 1 ? m : 0));
        }
        y.push_back(static_cast<double>(sum));
      }
  return y;
}

TEST(QuantizedProducts, ConvIntegerPadsWithTheZeroPoint) {
  const HostTensor x = random_bytes(DType::u8, {1, 2, 5, 4}, 11), w = random_bytes(DType::i8, {3, 2, 2, 3}, 12);
  const HostTensor x_zero = integers({}, {77}, DType::u8), w_zero = integers({3}, {-5, 0, 100}, DType::i8);
  for (const int64_t pad : {0, 1}) {
    OneNode node = OneNode("ConvInteger").input(x).input(w).input(x_zero).input(w_zero);
    const HostTensor ends = integers({4}, {pad, pad, pad, pad});
    node.set("auto_pad", "NOTSET").set_ints("pads", ends.to_ints());
    const std::vector<double> wanted = window_sums(x, 77, w, w_zero, pad);
    const Shape shape = {1, 3, 5 + 2 * pad - 1, 4 + 2 * pad - 2};
    EXPECT_EQ(difference(node.value(), shape, wanted, 0), "") << pad;
    EXPECT_EQ(difference(node.planned()[0], shape, wanted, 0), "") << pad;
  }
}

TEST(QuantizedProducts, QLinearConvAddsItsBiasBeforeItRounds) {
  const HostTensor x = random_bytes(DType::u8, {1, 2, 5, 4}, 13), w = random_bytes(DType::u8, {3, 2, 2, 3}, 14);
  const HostTensor w_zero = integers({3}, {5, 200, 100}, DType::u8), bias = integers({3}, {1000, -20000, 7}, DType::i32);
  const HostTensor w_scale = reals({3}, {0.5, 0.25, 2});
  std::vector<double> wanted = window_sums(x, 130, w, w_zero, 0);
  const auto plane = static_cast<int64_t>(wanted.size()) / 3;
  for (int64_t i = 0; i < static_cast<int64_t>(wanted.size()); ++i) {
    const double sum = wanted[i] + static_cast<double>(bias.get_int(i / plane));
    wanted[i] = saturated(std::nearbyint(sum * w_scale.get(i / plane) * 0.03125 / 8) + 99, 0, 255);
  }
  OneNode node = OneNode("QLinearConv").input(x).input(reals({}, {0.03125})).input(integers({}, {130}, DType::u8)).input(w).input(w_scale);
  node.input(w_zero).input(reals({}, {8})).input(integers({}, {99}, DType::u8)).input(bias);
  EXPECT_EQ(difference(node.value(), {1, 3, 4, 2}, wanted, 0), "");
  EXPECT_EQ(difference(node.planned()[0], {1, 3, 4, 2}, wanted, 0), "");
}

// x [1,3] quantised by its range, times whole weights, back to numbers: the gradient is that of the product by numbers.
TEST(QuantizedProducts, GradientsPassThroughDynamicQuantisation) {
  const std::vector<float> weights = {3, -7, 100, 0, 5, -128};  // [3,2]
  ModelBuilder model(21);
  model.proto.set_ir_version(10);
  model.input("x", {"1", "3"}).output("y", {});
  onnx::TensorProto& w = *model.proto.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::INT8);
  for (const int64_t dim : {3, 2}) w.add_dims(dim);
  std::string bytes;
  for (const float each : weights) bytes.push_back(static_cast<char>(static_cast<int8_t>(each)));
  w.set_raw_data(bytes);
  model.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.add("MatMulInteger", {"q", "w", "z"}, "sums").add("Cast", {"sums"}, "numbers", {{"to", 1}}).add("Mul", {"numbers", "s"}, "y");
  ModelBuilder plain(21);
  plain.proto.set_ir_version(10);
  plain.input("x", {"1", "3"}).output("y", {}).constant("w", {3, 2}, weights);
  plain.add("MatMul", {"x", "w"}, "y");
  const HostTensor x = reals({1, 3}, {0.7, -1.5, 3});
  std::vector<HostTensor> gradients;
  for (const ModelBuilder* each : {&model, &plain}) {
    const TemporaryFolder folder;
    const ModelFile file(each->save(folder.file("m.onnx")));
    const DataSet set{{{"x", onnx::TensorProto::FLOAT, x}}, {{"y", 0, {}}}, {}, {}};
    gradients.push_back(built_gradients(make_problem(import_forward(file, set, DType::f64))).at(0));
  }
  std::vector<double> wanted;
  for (int64_t i = 0; i < 3; ++i) wanted.push_back(gradients[1].get(i));
  EXPECT_EQ(difference(gradients[0], {1, 3}, wanted, 1e-9), "");
}

}  // namespace
}  // namespace zeroplan
