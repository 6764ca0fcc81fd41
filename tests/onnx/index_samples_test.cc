// Samples pass operators that pick, sort and scatter apart from each other, where each sample has its own.
#include "tests/onnx/sample_case.h"

namespace zeroplan {
namespace {

// [N,3,2] i64 in [0, 3) by the contents of x alone.
void places(ModelBuilder& m) {
  m.weight("steps", {}, {1.25f});
  m.weight("none", {}, {0.9f});
  m.add("Greater", {"x", "steps"}, "high");
  m.add("Greater", {"x", "none"}, "low");
  m.add("Cast", {"high"}, "above", {{"to", onnx::TensorProto::INT64}});
  m.add("Cast", {"low"}, "positive", {{"to", onnx::TensorProto::INT64}});
  m.add("Add", {"above", "positive"}, "places");
}

void weighted(ModelBuilder& m) { m.add("MatMul", {"x", "w"}, "xw"); }

const SampleCase kApart[] = {
    {"ElementsOfEachSample",
     [](ModelBuilder& m) {
       places(m);
       weighted(m);
       m.add("GatherElements", {"xw", "places"}, "y", {{"axis", 1}});
     }},
    {"ElementsOfOneTable",
     [](ModelBuilder& m) {
       places(m);
       m.weight("table", {1, 3, 2}, {1, 2, 3, 4, 5, 6});
       m.add("Shape", {"x"}, "shape");
       m.add("Expand", {"table", "shape"}, "tables");
       m.add("GatherElements", {"tables", "places"}, "picked", {{"axis", 1}});
       weighted(m);
       m.add("Mul", {"xw", "picked"}, "y");
     }},
    {"RowsOfEachSample",
     [](ModelBuilder& m) {
       places(m);
       weighted(m);
       m.ints("column", {1}, {0});
       m.add("Gather", {"places", "column"}, "rows", {{"axis", 2}});
       m.add("GatherND", {"xw", "rows"}, "y", {{"batch_dims", 1}});
     }},
    {"BestOfEachSample",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("k", {1}, {2});
       ModelBuilder::set(m.node("TopK", {"xw", "k"}, {"y", "which"}), "axis", int64_t{1});
     }},
    {"SumsOverSteps",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("axis", {}, {1});
       m.add("CumSum", {"xw", "axis"}, "y");
     }},
    {"ProductsOverSteps",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("axis", {1}, {1});
       m.add("ReduceProd", {"xw", "axis"}, "y");
     }},
    {"BestStepMarked",
     [](ModelBuilder& m) {
       weighted(m);
       m.add("ArgMax", {"x"}, "best", {{"axis", 1}, {"keepdims", 0}});
       m.ints("depth", {}, {3});
       m.weight("marks", {2}, {0.5f, 2});
       m.add("OneHot", {"best", "depth", "marks"}, "marked", {{"axis", 1}});
       m.add("Mul", {"xw", "marked"}, "y");
     }},
    {"ScatteredIntoEachSample",
     [](ModelBuilder& m) {
       places(m);
       weighted(m);
       onnx::NodeProto& n = m.node("ScatterElements", {"x", "places", "xw"}, {"y"});
       ModelBuilder::set(n, "axis", int64_t{1});
       ModelBuilder::set(n, "reduction", "add");
     }},
    {"Padded",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("pads", {6}, {0, 1, 0, 0, 2, 1});
       m.add("Pad", {"xw", "pads"}, "padded");
       m.ints("more", {6}, {0, 2, 1, 0, 1, 0});
       ModelBuilder::set(m.node("Pad", {"padded", "more"}, {"y"}), "mode", "reflect");
     }},
    {"Resized",
     [](ModelBuilder& m) {
       weighted(m);
       m.weight("scales", {3}, {1, 1.5f, 2});
       ModelBuilder::set(m.node("Resize", {"xw", "", "scales"}, {"y"}), "mode", "linear");
     }},
    {"Repeated",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("repeats", {3}, {1, 2, 3});
       m.add("Tile", {"xw", "repeats"}, "y");
     }},
    {"Contracted",
     [](ModelBuilder& m) {
       ModelBuilder::set(m.node("Einsum", {"x", "w", "x"}, {"y"}), "equation", "nsi,ij,ntj->nst");
     }},
    {"TrianglesOfScores",
     [](ModelBuilder& m) {
       ModelBuilder::set(m.node("Einsum", {"x", "w", "x"}, {"scores"}), "equation", "nsi,ij,ntj->nst");
       m.add("Trilu", {"scores"}, "y", {{"upper", 0}});
     }},
};

const SampleCase kMeeting[] = {
    {"ElementsAcrossSamples",
     [](ModelBuilder& m) {
       places(m);
       weighted(m);
       m.ints("zero", {}, {0});
       m.add("Mul", {"places", "zero"}, "first");
       m.add("GatherElements", {"xw", "first"}, "y", {{"axis", 0}});
     }},
    {"BestOfAll",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("k", {1}, {1});
       ModelBuilder::set(m.node("TopK", {"xw", "k"}, {"best", "which"}), "axis", int64_t{0});
       m.add("Sub", {"xw", "best"}, "y");
     }},
    {"SumsOverSamples",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("axis", {}, {0});
       m.add("CumSum", {"xw", "axis"}, "y");
     }},
    {"PaddedBatch",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("pads", {6}, {1, 0, 0, 0, 0, 0});
       m.add("Pad", {"xw", "pads"}, "y");
     }},
    {"ProductOfAll",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("axis", {1}, {0});
       m.add("ReduceProd", {"xw", "axis"}, "y");
     }},
    {"RowsAddedUp",
     [](ModelBuilder& m) {
       weighted(m);
       m.ints("first", {1, 1}, {0});
       m.ints("start", {1}, {0});
       m.ints("end", {1}, {1});
       m.add("Slice", {"x", "start", "end"}, "one");
       ModelBuilder::set(m.node("ScatterND", {"xw", "first", "one"}, {"y"}), "reduction", "add");
     }},
};

using IndexApart = Samples;
using IndexMeeting = Samples;

TEST_P(IndexApart, MicroBatchesAddUpToTheBatch) { expect_apart(); }

TEST_P(IndexMeeting, NeedsOneMicroBatch) { expect_meeting(); }

INSTANTIATE_TEST_SUITE_P(Cases, IndexApart, testing::ValuesIn(kApart), sample_case_name);
INSTANTIATE_TEST_SUITE_P(Cases, IndexMeeting, testing::ValuesIn(kMeeting), sample_case_name);

}  // namespace
}  // namespace zeroplan
