// Which models may be cut into micro-batches: those where the cut batch gives the sum and weight of the whole one.
#include "tests/onnx/sample_case.h"

namespace zeroplan {
namespace {

using Case = SampleCase;

void transpose(ModelBuilder& m, const char* in, const char* out, std::vector<int64_t> order) {
  ModelBuilder::set(m.node("Transpose", {in}, {out}), "perm", order);
}

// [N,3,2] with the samples' number known to the graph alone.
void batch_size(ModelBuilder& m) {
  m.ints("zero", {}, {0});
  m.ints("one", {}, {1});
  m.add("Shape", {"x"}, "shape");
  m.add("Gather", {"shape", "zero"}, "n");
  m.add("Range", {"zero", "n", "one"}, "places");
}

const Case kApart[] = {
    {"Linear",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "y");
     }},
    {"StepsFirst",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       m.add("MatMul", {"t", "w"}, "y");
     }},
    {"StepsFirstFlat",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       m.ints("flat", {2}, {-1, 2});
       m.ints("deep", {3}, {3, -1, 2});
       m.add("Reshape", {"t", "flat"}, "rows");
       m.add("MatMul", {"rows", "w"}, "xw");
       m.add("Reshape", {"xw", "deep"}, "steps");
       transpose(m, "steps", "back", {1, 0, 2});
       m.add("Mul", {"back", "x"}, "y");
     }},
    {"AttentionWithin",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "q");
       transpose(m, "x", "k", {0, 2, 1});
       m.add("MatMul", {"q", "k"}, "scores");
       m.add("Softmax", {"scores"}, "p", {{"axis", -1}});
       m.add("MatMul", {"p", "x"}, "y");
     }},
    {"CentredOverSteps",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       m.ints("steps", {1}, {1});
       m.add("ReduceMean", {"xw", "steps"}, "mean");
       m.add("Sub", {"xw", "mean"}, "y");
     }},
    {"Normalised",
     [](ModelBuilder& m) {
       m.weight("gamma", {2}, {1, 2});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("LayerNormalization", {"xw", "gamma"}, "y");
     }},
    {"StepsPicked",
     [](ModelBuilder& m) {
       m.ints("picked", {2}, {2, 0});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Gather", {"xw", "picked"}, "y", {{"axis", 1}});
     }},
    {"PlacesOfStepsExpanded",
     [](ModelBuilder& m) {
       m.weight("places_of_steps", {3, 2}, {1, 2, 3, 4, 5, 6});
       m.add("Shape", {"x"}, "shape");
       m.ints("flat", {2}, {-1, 2});
       m.add("Expand", {"places_of_steps", "shape"}, "everywhere");
       m.add("Reshape", {"everywhere", "flat"}, "table");
       m.add("Reshape", {"x", "flat"}, "rows");
       m.add("MatMul", {"rows", "w"}, "xw");
       m.add("Add", {"xw", "table"}, "y");
     }},
    {"TableRepeated",
     [](ModelBuilder& m) {
       batch_size(m);
       m.weight("table", {3, 2}, {1, 2, 3, 4, 5, 6});
       m.ints("flat", {2}, {-1, 2});
       m.ints("first", {1}, {0});
       m.ints("ones", {1}, {1});
       m.add("Unsqueeze", {"n", "first"}, "many");
       m.add("Concat", {"many", "ones"}, "repeats", {{"axis", 0}});
       m.add("Tile", {"table", "repeats"}, "everywhere");
       m.add("Reshape", {"x", "flat"}, "rows");
       m.add("MatMul", {"rows", "w"}, "xw");
       m.add("Add", {"xw", "everywhere"}, "y");
     }},
    {"TwoViewsJoined",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Concat", {"xw", "x"}, "both", {{"axis", 0}});
       m.add("Mul", {"both", "both"}, "y");
     }},
    {"EntropiesThenMean",  // label 1 where the first column is above 1, else ignored
     [](ModelBuilder& m) {
       m.ints("column", {}, {0});
       m.weight("level", {}, {1});
       m.add("MatMul", {"x", "w"}, "xw");
       transpose(m, "xw", "scores", {0, 2, 1});
       m.add("Gather", {"x", "column"}, "firsts", {{"axis", 2}});
       m.add("Greater", {"firsts", "level"}, "above");
       m.add("Cast", {"above"}, "labels", {{"to", onnx::TensorProto::INT64}});
       onnx::NodeProto& n = m.node("SoftmaxCrossEntropyLoss", {"scores", "labels"}, {"y"});
       ModelBuilder::set(n, "ignore_index", 0);
       ModelBuilder::set(n, "reduction", "none");
     }},
    {"MeanAndWeightDecay",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("ReduceMean", {"xw"}, "mean", {{"keepdims", 0}});
       m.add("Mul", {"w", "w"}, "ww");
       m.add("ReduceSum", {"ww"}, "decay", {{"keepdims", 0}});
       m.add("Add", {"mean", "decay"}, "y");
     },
     true},
};

const Case kMeeting[] = {
    {"Centred",
     [](ModelBuilder& m) {
       m.ints("first", {1}, {0});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("ReduceMean", {"xw", "first"}, "mean");
       m.add("Sub", {"xw", "mean"}, "y");
     }},
    {"ScaledByTheLargest",
     [](ModelBuilder& m) {
       m.ints("first", {1}, {0});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("ReduceMax", {"x", "first"}, "largest");
       m.add("Div", {"xw", "largest"}, "y");
     }},
    {"EachAgainstAll",
     [](ModelBuilder& m) {
       m.ints("flat", {2}, {-1, 6});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Reshape", {"xw", "flat"}, "rows");
       transpose(m, "rows", "columns", {1, 0});
       m.add("MatMul", {"rows", "columns"}, "y");
     }},
    {"SoftmaxOverTheBatch",
     [](ModelBuilder& m) {
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Softmax", {"xw"}, "y", {{"axis", 0}});
     }},
    {"AttentionOverTheBatch",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       m.add("MatMul", {"t", "w"}, "q");
       transpose(m, "t", "k", {0, 2, 1});
       m.add("MatMul", {"q", "k"}, "scores");
       m.add("Softmax", {"scores"}, "p", {{"axis", -1}});
       m.add("MatMul", {"p", "t"}, "y");
     }},
    {"ReversedBatch",
     [](ModelBuilder& m) {
       m.ints("start", {1}, {-1});
       m.ints("end", {1}, {-1000000});
       m.ints("axis", {1}, {0});
       m.ints("step", {1}, {-1});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Slice", {"x", "start", "end", "axis", "step"}, "reversed");
       m.add("Mul", {"xw", "reversed"}, "y");
     }},
    {"OneSampleForAll",
     [](ModelBuilder& m) {
       m.ints("zero", {}, {0});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Gather", {"x", "zero"}, "sample", {{"axis", 0}});
       m.add("Mul", {"xw", "sample"}, "y");
     }},
    {"WeightedByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.ints("behind", {2}, {1, 2});
       m.add("Cast", {"places"}, "numbers", {{"to", onnx::TensorProto::FLOAT}});
       m.add("Unsqueeze", {"numbers", "behind"}, "factors");
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Mul", {"xw", "factors"}, "y");
     }},
    {"RowsOfATableByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.weight("table", {9, 1, 2}, std::vector<float>(18, 2));
       m.add("Gather", {"table", "places"}, "rows");
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("Mul", {"xw", "rows"}, "y");
     }},
    {"LabelsByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.ints("steps", {1}, {1});
       m.weight("head", {2, 9}, std::vector<float>(18, 2));
       m.add("MatMul", {"x", "head"}, "xw");
       m.add("ReduceMean", {"xw", "steps"}, "scores", {{"keepdims", 0}});
       m.add("SoftmaxCrossEntropyLoss", {"scores", "places"}, "y");
     },
     true},
    {"EntropyOfTheMeanScores",
     [](ModelBuilder& m) {
       m.ints("both", {2}, {0, 1});
       m.ints("flat", {2}, {1, 2});
       m.ints("label", {1}, {1});
       m.add("MatMul", {"x", "w"}, "xw");
       m.add("ReduceMean", {"xw", "both"}, "mean");
       m.add("Reshape", {"mean", "flat"}, "scores");
       m.add("SoftmaxCrossEntropyLoss", {"scores", "label"}, "y");
     },
     true},
};

using Apart = Samples;
using Meeting = Samples;

TEST_P(Apart, MicroBatchesAddUpToTheBatch) { expect_apart(); }

TEST_P(Meeting, NeedsOneMicroBatch) { expect_meeting(); }

INSTANTIATE_TEST_SUITE_P(Cases, Apart, testing::ValuesIn(kApart), sample_case_name);
INSTANTIATE_TEST_SUITE_P(Cases, Meeting, testing::ValuesIn(kMeeting), sample_case_name);

}  // namespace
}  // namespace zeroplan
