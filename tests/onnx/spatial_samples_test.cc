// Samples pass convolutions, pools and norms of each sample apart from each other; statistics of a batch bring them together.
#include "tests/onnx/sample_case.h"

namespace zeroplan {
namespace {

// x as N samples of three channels, with a weight for two neighbours of each.
void kernel(ModelBuilder& m) { m.weight("k", {2, 3, 2}, {1, -0.5f, 0.25f, 2, 0.5f, 1, -1, 1.5f, 0.75f, -0.25f, 0.5f, 1}); }

void channels(ModelBuilder& m, const std::string& scale, const std::string& shift) {
  m.weight(scale, {3}, {1, 2, -0.5f});
  m.weight(shift, {3}, {0.5f, 0.25f, 1});
}

const SampleCase kApart[] = {
    {"Conv",
     [](ModelBuilder& m) {
       kernel(m);
       ModelBuilder::set(m.node("Conv", {"x", "k"}, {"y"}), "pads", std::vector<int64_t>{1, 0});
     }},
    {"ConvTranspose",
     [](ModelBuilder& m) {
       m.weight("t", {3, 1, 2}, {1, -0.5f, 0.25f, 2, 0.5f, 1});
       m.add("ConvTranspose", {"x", "t"}, "y");
     }},
    {"MaxPool",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       ModelBuilder::set(m.node("MaxPool", {"xw"}, {"y"}), "kernel_shape", std::vector<int64_t>{2});
     }},
    {"AveragePool",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       auto& pool = m.node("AveragePool", {"xw"}, {"y"});
       ModelBuilder::set(pool, "kernel_shape", std::vector<int64_t>{2});
       ModelBuilder::set(pool, "pads", std::vector<int64_t>{1, 0});
     }},
    {"InstanceNormalization",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       channels(m, "s", "b");
       m.add("InstanceNormalization", {"xw", "s", "b"}, "y");
     }},
    {"BatchNormalizationByStoredStatistics",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       channels(m, "s", "b");
       m.weight("mean", {3}, {0.5f, -1, 0.25f});
       m.weight("variance", {3}, {0.5f, 1, 2});
       m.add("BatchNormalization", {"xw", "s", "b", "mean", "variance"}, "y");
     }},
};

class SpatialApart : public Samples {};
TEST_P(SpatialApart, MicroBatchesAddUp) { expect_apart(); }
INSTANTIATE_TEST_SUITE_P(Models, SpatialApart, testing::ValuesIn(kApart), sample_case_name);

const SampleCase kMeeting[] = {
    {"AWeightMadeOfAllSamples",
     [](ModelBuilder& m) {
       kernel(m);
       m.add("ReduceMean", {"x"}, "mean");
       m.add("Mul", {"k", "mean"}, "scaled");
       m.add("Conv", {"x", "scaled"}, "y");
     }},
    {"SamplesAlongTheWindows",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       ModelBuilder::set(m.node("Transpose", {"xw"}, {"turned"}), "perm", std::vector<int64_t>{1, 2, 0});
       ModelBuilder::set(m.node("AveragePool", {"turned"}, {"y"}), "kernel_shape", std::vector<int64_t>{1});
     }},
    {"IndicesIntoTheBatch",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       ModelBuilder::set(m.node("MaxPool", {"xw"}, {"largest", "indices"}), "kernel_shape", std::vector<int64_t>{2});
       m.add("Cast", {"indices"}, "places", {{"to", onnx::TensorProto::FLOAT}});
       m.add("Mul", {"largest", "places"}, "y");
     }},
};

class SpatialMeeting : public Samples {};
TEST_P(SpatialMeeting, IsRefused) { expect_meeting(); }
INSTANTIATE_TEST_SUITE_P(Models, SpatialMeeting, testing::ValuesIn(kMeeting), sample_case_name);

}  // namespace
}  // namespace zeroplan
