// Which models may be cut into micro-batches: those where the cut batch gives the sum and weight of the whole one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kBatch = 4, kSteps = 3, kWidth = 2;
struct Case {
  const char* name;
  void (*build)(ModelBuilder& m);  // from x[N,3,2] and w[2,2] to y
  bool alone = false;              // y is the loss; otherwise its mean square is
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void node(ModelBuilder& m, const char* op, std::vector<std::string> in, const char* out, std::map<std::string, int64_t> attributes = {}) {
  onnx::NodeProto& n = m.node(op, std::move(in), {out});
  for (const auto& [name, value] : attributes) ModelBuilder::set(n, name, value);
}

void transpose(ModelBuilder& m, const char* in, const char* out, std::vector<int64_t> order) {
  ModelBuilder::set(m.node("Transpose", {in}, {out}), "perm", order);
}

// [N,3,2] with the samples' number known to the graph alone.
void batch_size(ModelBuilder& m) {
  m.ints("zero", {}, {0});
  m.ints("one", {}, {1});
  node(m, "Shape", {"x"}, "shape");
  node(m, "Gather", {"shape", "zero"}, "n");
  node(m, "Range", {"zero", "n", "one"}, "places");
}

const Case kApart[] = {
    {"Linear", [](ModelBuilder& m) { node(m, "MatMul", {"x", "w"}, "y"); }},
    {"StepsFirst",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       node(m, "MatMul", {"t", "w"}, "y");
     }},
    {"StepsFirstFlat",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       m.ints("flat", {2}, {-1, 2});
       m.ints("deep", {3}, {3, -1, 2});
       node(m, "Reshape", {"t", "flat"}, "rows");
       node(m, "MatMul", {"rows", "w"}, "xw");
       node(m, "Reshape", {"xw", "deep"}, "steps");
       transpose(m, "steps", "back", {1, 0, 2});
       node(m, "Mul", {"back", "x"}, "y");
     }},
    {"AttentionWithin",
     [](ModelBuilder& m) {
       node(m, "MatMul", {"x", "w"}, "q");
       transpose(m, "x", "k", {0, 2, 1});
       node(m, "MatMul", {"q", "k"}, "scores");
       node(m, "Softmax", {"scores"}, "p", {{"axis", -1}});
       node(m, "MatMul", {"p", "x"}, "y");
     }},
    {"CentredOverSteps",
     [](ModelBuilder& m) {
       node(m, "MatMul", {"x", "w"}, "xw");
       m.ints("steps", {1}, {1});
       node(m, "ReduceMean", {"xw", "steps"}, "mean");
       node(m, "Sub", {"xw", "mean"}, "y");
     }},
    {"Normalised",
     [](ModelBuilder& m) {
       m.weight("gamma", {2}, {1, 2});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "LayerNormalization", {"xw", "gamma"}, "y");
     }},
    {"StepsPicked",
     [](ModelBuilder& m) {
       m.ints("picked", {2}, {2, 0});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Gather", {"xw", "picked"}, "y", {{"axis", 1}});
     }},
    {"PlacesOfStepsExpanded",
     [](ModelBuilder& m) {
       m.weight("places_of_steps", {3, 2}, {1, 2, 3, 4, 5, 6});
       node(m, "Shape", {"x"}, "shape");
       m.ints("flat", {2}, {-1, 2});
       node(m, "Expand", {"places_of_steps", "shape"}, "everywhere");
       node(m, "Reshape", {"everywhere", "flat"}, "table");
       node(m, "Reshape", {"x", "flat"}, "rows");
       node(m, "MatMul", {"rows", "w"}, "xw");
       node(m, "Add", {"xw", "table"}, "y");
     }},
    {"TableRepeated",
     [](ModelBuilder& m) {
       batch_size(m);
       m.weight("table", {3, 2}, {1, 2, 3, 4, 5, 6});
       m.ints("flat", {2}, {-1, 2});
       m.ints("first", {1}, {0});
       m.ints("ones", {1}, {1});
       node(m, "Unsqueeze", {"n", "first"}, "many");
       node(m, "Concat", {"many", "ones"}, "repeats", {{"axis", 0}});
       node(m, "Tile", {"table", "repeats"}, "everywhere");
       node(m, "Reshape", {"x", "flat"}, "rows");
       node(m, "MatMul", {"rows", "w"}, "xw");
       node(m, "Add", {"xw", "everywhere"}, "y");
     }},
    {"TwoViewsJoined",
     [](ModelBuilder& m) {
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Concat", {"xw", "x"}, "both", {{"axis", 0}});
       node(m, "Mul", {"both", "both"}, "y");
     }},
    {"EntropiesThenMean",  // label 1 where the first column is above 1, else ignored
     [](ModelBuilder& m) {
       m.ints("column", {}, {0});
       m.weight("level", {}, {1});
       node(m, "MatMul", {"x", "w"}, "xw");
       transpose(m, "xw", "scores", {0, 2, 1});
       node(m, "Gather", {"x", "column"}, "firsts", {{"axis", 2}});
       node(m, "Greater", {"firsts", "level"}, "above");
       node(m, "Cast", {"above"}, "labels", {{"to", onnx::TensorProto::INT64}});
       onnx::NodeProto& n = m.node("SoftmaxCrossEntropyLoss", {"scores", "labels"}, {"y"});
       ModelBuilder::set(n, "ignore_index", 0);
       ModelBuilder::set(n, "reduction", "none");
     }},
    {"MeanAndWeightDecay",
     [](ModelBuilder& m) {
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "ReduceMean", {"xw"}, "mean", {{"keepdims", 0}});
       node(m, "Mul", {"w", "w"}, "ww");
       node(m, "ReduceSum", {"ww"}, "decay", {{"keepdims", 0}});
       node(m, "Add", {"mean", "decay"}, "y");
     },
     true},
};

const Case kMeeting[] = {
    {"Centred",
     [](ModelBuilder& m) {
       m.ints("first", {1}, {0});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "ReduceMean", {"xw", "first"}, "mean");
       node(m, "Sub", {"xw", "mean"}, "y");
     }},
    {"ScaledByTheLargest",
     [](ModelBuilder& m) {
       m.ints("first", {1}, {0});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "ReduceMax", {"x", "first"}, "largest");
       node(m, "Div", {"xw", "largest"}, "y");
     }},
    {"EachAgainstAll",
     [](ModelBuilder& m) {
       m.ints("flat", {2}, {-1, 6});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Reshape", {"xw", "flat"}, "rows");
       transpose(m, "rows", "columns", {1, 0});
       node(m, "MatMul", {"rows", "columns"}, "y");
     }},
    {"SoftmaxOverTheBatch",
     [](ModelBuilder& m) {
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Softmax", {"xw"}, "y", {{"axis", 0}});
     }},
    {"AttentionOverTheBatch",
     [](ModelBuilder& m) {
       transpose(m, "x", "t", {1, 0, 2});
       node(m, "MatMul", {"t", "w"}, "q");
       transpose(m, "t", "k", {0, 2, 1});
       node(m, "MatMul", {"q", "k"}, "scores");
       node(m, "Softmax", {"scores"}, "p", {{"axis", -1}});
       node(m, "MatMul", {"p", "t"}, "y");
     }},
    {"ReversedBatch",
     [](ModelBuilder& m) {
       m.ints("start", {1}, {-1});
       m.ints("end", {1}, {-1000000});
       m.ints("axis", {1}, {0});
       m.ints("step", {1}, {-1});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Slice", {"x", "start", "end", "axis", "step"}, "reversed");
       node(m, "Mul", {"xw", "reversed"}, "y");
     }},
    {"OneSampleForAll",
     [](ModelBuilder& m) {
       m.ints("zero", {}, {0});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Gather", {"x", "zero"}, "sample", {{"axis", 0}});
       node(m, "Mul", {"xw", "sample"}, "y");
     }},
    {"WeightedByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.ints("behind", {2}, {1, 2});
       node(m, "Cast", {"places"}, "numbers", {{"to", onnx::TensorProto::FLOAT}});
       node(m, "Unsqueeze", {"numbers", "behind"}, "factors");
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Mul", {"xw", "factors"}, "y");
     }},
    {"RowsOfATableByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.weight("table", {9, 1, 2}, std::vector<float>(18, 2));
       node(m, "Gather", {"table", "places"}, "rows");
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "Mul", {"xw", "rows"}, "y");
     }},
    {"LabelsByPlace",
     [](ModelBuilder& m) {
       batch_size(m);
       m.ints("steps", {1}, {1});
       m.weight("head", {2, 9}, std::vector<float>(18, 2));
       node(m, "MatMul", {"x", "head"}, "xw");
       node(m, "ReduceMean", {"xw", "steps"}, "scores", {{"keepdims", 0}});
       node(m, "SoftmaxCrossEntropyLoss", {"scores", "places"}, "y");
     },
     true},
    {"EntropyOfTheMeanScores",
     [](ModelBuilder& m) {
       m.ints("both", {2}, {0, 1});
       m.ints("flat", {2}, {1, 2});
       m.ints("label", {1}, {1});
       node(m, "MatMul", {"x", "w"}, "xw");
       node(m, "ReduceMean", {"xw", "both"}, "mean");
       node(m, "Reshape", {"mean", "flat"}, "scores");
       node(m, "SoftmaxCrossEntropyLoss", {"scores", "label"}, "y");
     },
     true},
};

class Samples : public testing::TestWithParam<Case> {
 protected:
  std::string save(const TempFolder& folder) const {
    ModelBuilder m;
    m.input("x", {"N", "3", "2"}).output("loss", {});
    m.weight("w", {kWidth, kWidth}, {0.5f, -1, 0.25f, 2});
    GetParam().build(m);
    if (GetParam().alone) {
      node(m, "Identity", {"y"}, "loss");
    } else {
      node(m, "Mul", {"y", "y"}, "square");
      node(m, "ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
    }
    return m.save(folder / "m.onnx");
  }

  static ImportOptions cut_into(int64_t micro_batches) {
    ImportOptions options;
    options.samples = kBatch / micro_batches;
    options.micro_batches = micro_batches;
    return options;
  }

  static HostTensor samples(int64_t first, int64_t count) {
    HostTensor x(DType::f32, {count, kSteps, kWidth});
    for (int64_t i = 0; i < x.count(); ++i) x.set(i, 0.5 + static_cast<double>((first * kSteps * kWidth + i) * 7 % 11) / 8);
    return x;
  }
};

using Apart = Samples;
using Meeting = Samples;

TEST_P(Apart, MicroBatchesAddUpToTheBatch) {
  TempFolder folder;
  const std::string path = save(folder);
  const double whole = evaluate_loss(import_model(path, cut_into(1)), {{"x", samples(0, kBatch)}});
  ASSERT_NE(whole, 0);
  for (const int64_t micro_batches : {2, 4}) {
    const ImportedModel model = import_model(path, cut_into(micro_batches));
    LossParts total;
    for (int64_t v = 0; v < micro_batches; ++v) {
      const int64_t count = kBatch / micro_batches;
      const LossParts part = evaluate_parts(model, {{"x", samples(v * count, count)}});
      total.sum += part.sum;
      total.weight += part.weight;
    }
    EXPECT_NEAR(total.sum / total.weight, whole, 1e-5 * std::abs(whole)) << micro_batches;
  }
}

TEST_P(Meeting, NeedsOneMicroBatch) {
  TempFolder folder;
  const std::string path = save(folder);
  EXPECT_NO_THROW(evaluate_loss(import_model(path, cut_into(1)), {{"x", samples(0, kBatch)}}));
  for (const int64_t micro_batches : {2, 4}) {
    const auto cut = [&] { import_model(path, cut_into(micro_batches)); };
    EXPECT_THAT(cut, ThrowsMessage<Error>(HasSubstr("use one micro-batch"))) << micro_batches;
  }
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Cases, Apart, testing::ValuesIn(kApart), kName);
INSTANTIATE_TEST_SUITE_P(Cases, Meeting, testing::ValuesIn(kMeeting), kName);

}  // namespace
}  // namespace zeroplan
