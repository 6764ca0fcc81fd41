// Resizing, sampling grids and contractions, with results known from elsewhere.
#include "tests/onnx/decode_case.h"

namespace zeroplan {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

MATCHER(Near, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-9; }

ModelBuilder with_output() {
  ModelBuilder m(20);
  m.output("y", {});
  return m;
}

using Texts = std::map<std::string, std::string>;

// x [1,1,n] of 0, 1, 2, … to `to` elements.
std::vector<double> resized(int64_t n, int64_t to, const Texts& texts, const std::map<std::string, int64_t>& numbers_of = {}) {
  ModelBuilder m = with_output();
  m.input("x", {"1", "1", std::to_string(n)}).ints("sizes", {3}, {1, 1, to});
  onnx::NodeProto& node = m.node("Resize", {"x", "", "", "sizes"}, {"y"});
  for (const auto& [name, text] : texts) ModelBuilder::set(node, name, text);
  for (const auto& [name, number] : numbers_of) ModelBuilder::set(node, name, number);
  return numbers(forward(m, {{"x", counted({1, 1, n})}}));
}

TEST(DecodeGrid, ResizePlaces) {
  const auto linear = [](const char* coordinates) {
    return resized(4, 8, {{"mode", "linear"}, {"coordinate_transformation_mode", coordinates}});
  };
  EXPECT_THAT(linear("half_pixel"), Pointwise(Near(), std::vector<double>{0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3}));
  EXPECT_THAT(linear("asymmetric"), Pointwise(Near(), std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3}));
  EXPECT_THAT(linear("align_corners"), Pointwise(Near(), std::vector<double>{0, 3. / 7, 6. / 7, 9. / 7, 12. / 7, 15. / 7, 18. / 7, 3}));
  EXPECT_THAT(resized(4, 1, {{"mode", "linear"}, {"coordinate_transformation_mode", "pytorch_half_pixel"}}), ElementsAre(0));
  EXPECT_THAT(resized(4, 1, {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}}), ElementsAre(1.5));
}

TEST(DecodeGrid, ResizeRounding) {
  const auto nearest = [](const char* rounding) {
    return resized(6, 4, {{"mode", "nearest"}, {"coordinate_transformation_mode", "half_pixel"}, {"nearest_mode", rounding}});
  };  // places 0.25, 1.75, 3.25, 4.75
  EXPECT_THAT(nearest("round_prefer_floor"), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(nearest("floor"), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(nearest("ceil"), ElementsAre(1, 2, 4, 5));
  const auto halves = [](const char* rounding) {
    return resized(2, 4, {{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", rounding}});
  };  // places 0, 0.5, 1, 1.5
  EXPECT_THAT(halves("round_prefer_floor"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(halves("round_prefer_ceil"), ElementsAre(0, 1, 1, 1));
}

// The two ways to the same numbers: a matrix product for short axes, picking for long ones.
TEST(DecodeGrid, ResizeOfALongAxisAsOfAShortOne) {
  const Texts cubic = {{"mode", "cubic"}, {"coordinate_transformation_mode", "half_pixel"}};
  const std::vector<double> small = resized(200, 400, cubic), large = resized(300, 600, cubic);
  for (int64_t i = 0; i < 300; ++i) EXPECT_NEAR(small[i], large[i], 1e-9) << i;
}

TEST(DecodeGrid, ResizeAntialiasAveragesOverItsReach) {
  const std::vector<double> y = resized(4, 2, {{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}}, {{"antialias", 1}});
  EXPECT_THAT(y, Pointwise(Near(), std::vector<double>{(0 * 1 + 0 * 3 + 1 * 3 + 2 * 1) / 8., (1 * 1 + 2 * 3 + 3 * 3 + 3 * 1) / 8.}));
}

TEST(DecodeGrid, ResizeOfARegion) {
  ModelBuilder m = with_output();
  m.input("x", {"3"}).ints("sizes", {1}, {4});
  m.weight("roi", {2}, {0.5f, 2});
  onnx::NodeProto& n = m.node("Resize", {"x", "roi", "", "sizes"}, {"y"});
  ModelBuilder::set(n, "mode", "linear");
  ModelBuilder::set(n, "coordinate_transformation_mode", "tf_crop_and_resize");
  onnx::AttributeProto& value = *n.add_attribute();
  value.set_name("extrapolation_value");
  value.set_type(onnx::AttributeProto::FLOAT);
  value.set_f(-7);
  EXPECT_THAT(numbers(forward(m, {{"x", counted({3})}})), ElementsAre(1, 2, -7, -7));
}

TEST(DecodeGrid, ResizeKeepsProportions) {
  for (const auto& [policy, shape] : std::map<std::string, Shape>{{"not_larger", {3, 6}}, {"not_smaller", {5, 10}}, {"stretch", {5, 6}}}) {
    ModelBuilder m = with_output();
    m.input("x", {"2", "4"}).ints("sizes", {2}, {5, 6});
    ModelBuilder::set(m.node("Resize", {"x", "", "", "sizes"}, {"y"}), "keep_aspect_ratio_policy", policy);
    EXPECT_EQ(forward(m, {{"x", counted({2, 4})}}).shape(), shape) << policy;
  }
}

HostTensor contracted(const std::string& equation, const std::map<std::string, HostTensor>& inputs) {
  ModelBuilder m = with_output();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : inputs) {
    std::vector<std::string> dims;
    for (const int64_t dim : tensor.shape()) dims.push_back(std::to_string(dim));
    m.input(name, dims);
    names.push_back(name);
  }
  ModelBuilder::set(m.node("Einsum", names, {"y"}), "equation", equation);
  return forward(m, inputs);
}

TEST(DecodeGrid, Einsum) {
  const HostTensor a = counted({2, 3}), square = counted({2, 2, 2});
  EXPECT_THAT(numbers(contracted("ij,kj->ik", {{"a", a}, {"b", a}})), ElementsAre(5, 14, 14, 50));
  EXPECT_THAT(numbers(contracted("ij,ij", {{"a", a}, {"b", a}})), ElementsAre(55));
  EXPECT_THAT(numbers(contracted("...ii->...i", {{"a", square}})), ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(numbers(contracted("iij->j", {{"a", square}})), ElementsAre(6, 8));
  EXPECT_THAT(numbers(contracted("i,j->ji", {{"a", counted({2})}, {"b", reals({2}, {5, 6})}})), ElementsAre(0, 5, 0, 6));
  EXPECT_THAT(numbers(contracted("...j,j->...", {{"a", a}, {"b", reals({3}, {1, 10, 100})}})), ElementsAre(210, 543));
  EXPECT_THAT(message([&] { contracted("ij,jk->ik", {{"a", a}, {"b", a}}); }), HasSubstr("axis 'j' has 3 elements in one operand and 2"));
  EXPECT_THAT(message([&] { contracted("ij->iz", {{"a", a}}); }), HasSubstr("names axis 'z', which no operand has"));
}

// x [1,1,2,3] of 0 … 5 at one point (column, row) of [-1, 1].
double sampled(const Texts& texts, int64_t align_corners, double column, double row) {
  ModelBuilder m = with_output();
  m.input("x", {"1", "1", "2", "3"}).input("grid", {"1", "1", "1", "2"});
  onnx::NodeProto& n = m.node("GridSample", {"x", "grid"}, {"y"});
  for (const auto& [name, text] : texts) ModelBuilder::set(n, name, text);
  ModelBuilder::set(n, "align_corners", align_corners);
  return forward(m, {{"x", counted({1, 1, 2, 3})}, {"grid", reals({1, 1, 1, 2}, {column, row})}}).get(0);
}

TEST(DecodeGrid, GridSample) {
  EXPECT_NEAR(sampled({{"mode", "linear"}}, 1, 0, 0), 2.5, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "linear"}}, 1, 0.5, -1), 1.5, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "linear"}}, 0, -1, 1), 3. / 4, 1e-12);  // a quarter of the corner, the rest is padding
  EXPECT_NEAR(sampled({{"mode", "linear"}, {"padding_mode", "border"}}, 0, -9, 9), 3, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "linear"}, {"padding_mode", "reflection"}}, 1, 1.5, -1), 1.5, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "nearest"}}, 1, 0.4, 0.9), 4, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "nearest"}}, 1, -2, 0), 0, 1e-12);
  EXPECT_NEAR(sampled({{"mode", "cubic"}, {"padding_mode", "border"}}, 1, 1, 1), 5, 1e-12);
}

TEST(DecodeGrid, AffineGridOfTheIdentityIsThePixels) {
  ModelBuilder m = with_output();
  m.input("theta", {"1", "2", "3"}).add("AffineGrid", {"theta", "size"}, "y");
  m.ints("size", {4}, {1, 1, 2, 2});
  EXPECT_THAT(numbers(forward(m, {{"theta", reals({1, 2, 3}, {1, 0, 0, 0, 1, 0})}})),
              ElementsAre(-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5));
}

TEST(DecodeGrid, RoiAlignOfAWholeRamp) {
  for (const auto& [mode, expected] : std::map<std::string, double>{{"avg", 1.5}, {"max", 1.25}}) {
    ModelBuilder m = with_output();
    m.input("x", {"1", "1", "1", "4"}).input("rois", {"1", "4"}).ints("image", {1}, {0});
    onnx::NodeProto& n = m.node("RoiAlign", {"x", "rois", "image"}, {"y"});
    ModelBuilder::set(n, "mode", mode);
    ModelBuilder::set(n, "sampling_ratio", int64_t{2});
    EXPECT_NEAR(forward(m, {{"x", counted({1, 1, 1, 4})}, {"rois", reals({1, 4}, {0.25, 0, 3.75, 1})}}).get(0), expected, 1e-12) << mode;
  }
}

}  // namespace
}  // namespace zeroplan
