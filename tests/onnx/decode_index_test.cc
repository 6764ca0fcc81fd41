// Gathers, scatters, sorting, padding and reshaping of pixels, with results known from elsewhere.
#include "tests/onnx/decode_case.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int kInt64 = onnx::TensorProto::INT64;

ModelBuilder with_output() {
  ModelBuilder m(20);
  m.output("y", {});
  return m;
}

TEST(DecodeIndex, GatherElementsWithFewerIndicesThanData) {
  ModelBuilder m = with_output();
  m.input("x", {"3", "3"}).input("i", {"2", "2"}, kInt64).add("GatherElements", {"x", "i"}, "y", {{"axis", 0}});
  EXPECT_THAT(numbers(forward(m, {{"x", counted({3, 3})}, {"i", whole({2, 2}, {2, -3, -1, 1})}})), ElementsAre(6, 1, 6, 4));
}

TEST(DecodeIndex, ElementsOutsideTheirAxisAreRefused) {
  ModelBuilder m = with_output();
  m.input("x", {"3", "3"}).input("i", {"3", "1"}, kInt64).add("GatherElements", {"x", "i"}, "y", {{"axis", 1}});
  EXPECT_THROW(forward(m, {{"x", counted({3, 3})}, {"i", whole({3, 1}, {0, 3, 0})}}), Error);
  ModelBuilder s = with_output();
  s.input("x", {"3", "3"})
      .input("i", {"1", "3"}, kInt64)
      .input("u", {"1", "3"})
      .add("ScatterElements", {"x", "i", "u"}, "y", {{"axis", 1}});
  for (const int64_t outside : {3, -4})
    EXPECT_THROW(forward(s, {{"x", counted({3, 3})}, {"i", whole({1, 3}, {0, outside, 1})}, {"u", counted({1, 3})}}), Error);
}

TEST(DecodeIndex, GatherNdTellsItsAxesApart) {
  ModelBuilder m = with_output();
  m.input("x", {"2", "3", "2"}).input("i", {"2", "2"}, kInt64).add("GatherND", {"x", "i"}, "y");
  EXPECT_THAT(numbers(forward(m, {{"x", counted({2, 3, 2})}, {"i", whole({2, 2}, {1, -1, -2, 1})}})), ElementsAre(10, 11, 2, 3));
  EXPECT_THROW(forward(m, {{"x", counted({2, 3, 2})}, {"i", whole({2, 2}, {0, 3, 0, 0})}}), Error);  // not row 0 of the next
}

TEST(DecodeIndex, GatherNdOfEachSample) {
  ModelBuilder m = with_output();
  m.input("x", {"2", "3", "2"}).input("i", {"2", "1"}, kInt64).add("GatherND", {"x", "i"}, "y", {{"batch_dims", 1}});
  EXPECT_THAT(numbers(forward(m, {{"x", counted({2, 3, 2})}, {"i", whole({2, 1}, {2, 0})}})), ElementsAre(4, 5, 6, 7));
}

TEST(DecodeIndex, ScatterNdInOrder) {
  for (const auto& [reduction, expected] : std::map<std::string, std::vector<double>>{
           {"none", {0, 30, 2}}, {"add", {0, 51, 2}}, {"mul", {0, 600, 2}}, {"max", {0, 30, 2}}, {"min", {0, 1, 2}}}) {
    ModelBuilder m = with_output();
    m.input("x", {"3"}).input("u", {"2"}).ints("i", {2, 1}, {1, -2});
    ModelBuilder::set(m.node("ScatterND", {"x", "i", "u"}, {"y"}), "reduction", reduction);
    EXPECT_THAT(numbers(forward(m, {{"x", counted({3})}, {"u", reals({2}, {20, 30})}})), ElementsAreArray(expected)) << reduction;
  }
}

TEST(DecodeIndex, OneHotCountsFromTheEndAndLeavesOutWhatIsOutside) {
  ModelBuilder m = with_output();
  m.input("i", {"4"}, kInt64).ints("depth", {1}, {3});
  m.weight("values", {2}, {-1, 5});
  m.add("OneHot", {"i", "depth", "values"}, "y");
  EXPECT_THAT(numbers(forward(m, {{"i", whole({4}, {1, -1, 3, -4})}})), ElementsAre(-1, 5, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1));
}

TEST(DecodeIndex, TopKOfEqualOnesTakesTheFirst) {
  ModelBuilder m = with_output();
  m.input("x", {"5"}).ints("k", {1}, {3});
  m.node("TopK", {"x", "k"}, {"values", "y"});
  EXPECT_THAT(numbers(forward(m, {{"x", reals({5}, {1, 7, 3, 7, 3})}})), ElementsAre(1, 3, 2));
}

TEST(DecodeIndex, ArgMinOfBytes) {
  ModelBuilder m = with_output();
  m.input("x", {"2", "3"}, onnx::TensorProto::UINT8).add("ArgMin", {"x"}, "y", {{"axis", 1}, {"keepdims", 0}, {"select_last_index", 1}});
  EXPECT_THAT(numbers(forward(m, {{"x", reals({2, 3}, {200, 3, 3, 0, 255, 1})}})), ElementsAre(2, 0));
}

TEST(DecodeIndex, PadModes) {
  const std::map<std::string, std::vector<double>> expected = {
      {"constant", {0, 0, 1, 2, 3, 0}}, {"reflect", {3, 2, 1, 2, 3, 2}}, {"edge", {1, 1, 1, 2, 3, 3}}, {"wrap", {2, 3, 1, 2, 3, 1}}};
  for (const auto& [mode, values] : expected) {
    ModelBuilder m = with_output();
    m.input("x", {"3"}).ints("pads", {2}, {2, 1});
    ModelBuilder::set(m.node("Pad", {"x", "pads"}, {"y"}), "mode", mode);
    EXPECT_THAT(numbers(forward(m, {{"x", reals({3}, {1, 2, 3})}})), ElementsAreArray(values)) << mode;
  }
}

TEST(DecodeIndex, PadCutsOffAndTakesItsValueFromTheData) {
  ModelBuilder m = with_output();
  m.input("x", {"1", "3"}).input("v", {});
  m.ints("pads", {2}, {-1, 2});
  m.ints("axes", {1}, {-1});
  m.add("Pad", {"x", "pads", "v", "axes"}, "y");
  EXPECT_THAT(numbers(forward(m, {{"x", reals({1, 3}, {1, 2, 3})}, {"v", reals({}, {9})}})), ElementsAre(2, 3, 9, 9));
}

TEST(DecodeIndex, ReverseSequenceTurnsTheFirstSteps) {
  ModelBuilder m = with_output();
  m.input("x", {"2", "3"}).input("n", {"2"}, kInt64).add("ReverseSequence", {"x", "n"}, "y", {{"batch_axis", 0}, {"time_axis", 1}});
  EXPECT_THAT(numbers(forward(m, {{"x", counted({2, 3})}, {"n", whole({2}, {2, 3})}})), ElementsAre(1, 0, 2, 5, 4, 3));
}

TEST(DecodeIndex, TileTriluAndPixels) {
  ModelBuilder tile = with_output();
  tile.input("x", {"2", "1"}).add("Tile", {"x", "r"}, "y");
  tile.ints("r", {2}, {2, 3});
  EXPECT_THAT(numbers(forward(tile, {{"x", counted({2, 1})}})), ElementsAre(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1));
  ModelBuilder trilu = with_output();
  trilu.input("x", {"2", "3"}).add("Trilu", {"x", "k"}, "y", {{"upper", 0}});
  trilu.ints("k", {}, {-1});
  EXPECT_THAT(numbers(forward(trilu, {{"x", counted({2, 3})}})), ElementsAre(0, 0, 0, 3, 0, 0));
  for (const auto& [mode, expected] :
       std::map<std::string, std::vector<double>>{{"DCR", {0, 2, 4, 6, 1, 3, 5, 7}}, {"CRD", {0, 1, 2, 3, 4, 5, 6, 7}}}) {
    ModelBuilder m = with_output();
    onnx::NodeProto& n = m.input("x", {"1", "8", "1", "1"}).node("DepthToSpace", {"x"}, {"y"});
    ModelBuilder::set(n, "blocksize", int64_t{2});
    ModelBuilder::set(n, "mode", mode);
    EXPECT_THAT(numbers(forward(m, {{"x", counted({1, 8, 1, 1})}})), ElementsAreArray(expected)) << mode;
  }
}

TEST(DecodeIndex, Col2ImAddsWhatOverlaps) {
  ModelBuilder m = with_output();
  m.input("x", {"1", "2", "4"});
  m.ints("image", {1}, {3});
  m.ints("block", {1}, {2});
  ModelBuilder::set(m.node("Col2Im", {"x", "image", "block"}, {"y"}), "pads", std::vector<int64_t>{1, 1});
  EXPECT_THAT(numbers(forward(m, {{"x", counted({1, 2, 4})}})), ElementsAre(1 + 4, 2 + 5, 3 + 6));
}

TEST(DecodeIndex, UnevenSplitEndsWithWhatIsLeft) {
  ModelBuilder m = with_output();
  m.input("x", {"5"});
  ModelBuilder::set(m.node("Split", {"x"}, {"a", "b", "y", "d"}), "num_outputs", int64_t{4});
  EXPECT_THAT(numbers(forward(m, {{"x", counted({5})}})), ElementsAre(4));
}

TEST(DecodeIndex, ShapesThatDependOnDataAreRefused) {
  const auto refusal = [](const char* op, std::vector<std::string> inputs) {
    ModelBuilder m = with_output();
    m.input("x", {"1", "2", "4"}).input("s", {"1", "1", "2"}).input("c", {"4"}, onnx::TensorProto::BOOL);
    m.add(op, std::move(inputs), "y");
    return message([&] { forward(m); });
  };
  EXPECT_THAT(refusal("NonZero", {"x"}), HasSubstr("must be known when the model is compiled"));
  EXPECT_THAT(refusal("Unique", {"x"}), HasSubstr("must be known when the model is compiled"));
  EXPECT_THAT(refusal("Compress", {"x", "c"}), HasSubstr("must be known when the model is compiled"));
  EXPECT_THAT(refusal("NonMaxSuppression", {"x", "s"}), HasSubstr("boxes, which decide the shape of its result"));
}

TEST(DecodeIndex, UniqueAndNonZeroOfConstants) {
  ModelBuilder m = with_output();
  m.ints("x", {6}, {2, 1, 1, 3, 4, 3});
  ModelBuilder::set(m.node("Unique", {"x"}, {"values", "first", "inverse", "counts"}), "sorted", int64_t{0});
  m.add("Concat", {"values", "first", "inverse", "counts"}, "y", {{"axis", 0}});
  EXPECT_THAT(numbers(forward(m)), ElementsAre(2, 1, 3, 4, 0, 1, 3, 4, 0, 1, 1, 2, 3, 2, 1, 2, 2, 1));
  ModelBuilder n = with_output();
  n.ints("x", {2, 2}, {0, 5, 7, 0});
  n.add("NonZero", {"x"}, "y");
  EXPECT_THAT(numbers(forward(n)), ElementsAre(0, 1, 1, 0));
}

TEST(DecodeIndex, BoxesThatOverlapAreLeftOut) {
  ModelBuilder m = with_output();
  m.weight("boxes", {1, 3, 4}, {0, 0, 2, 2, 0, 0.2f, 2, 2, 5, 5, 6, 6});
  m.weight("scores", {1, 1, 3}, {0.5f, 0.9f, 0.7f});
  m.weight("overlap", {}, {0.5f});
  m.ints("most", {}, {3});
  m.add("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, "y");
  EXPECT_THAT(numbers(forward(m)), ElementsAre(0, 0, 1, 0, 0, 2));
}

}  // namespace
}  // namespace zeroplan
