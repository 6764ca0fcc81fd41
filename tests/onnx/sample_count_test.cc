// Models that use the number of their samples: after the sum over them it may be cut into micro-batches, before it may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kBatch = 8;

struct Case {
  const char* name;
  void (*build)(ModelBuilder& m);  // from x[N,4], q = (x·w)² [N,4], n [1] = N to loss
  const char* node = "";           // that is refused
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void total(ModelBuilder& m, const char* in, const char* out) { m.add("ReduceSum", {in}, out, {{"keepdims", 0}}); }

// w [4,4] to repeated [N,4,4].
void repeat_weight(ModelBuilder& m) {
  m.ints("deep", {3}, {1, 4, 4});
  m.ints("sides", {2}, {4, 4});
  m.add("Reshape", {"w", "deep"}, "w_deep");
  m.add("Concat", {"n_int", "sides"}, "many", {{"axis", 0}});
  m.add("Expand", {"w_deep", "many"}, "repeated");
}

const Case kAfter[] = {
    {"SumOverSamples",
     [](ModelBuilder& m) {
       total(m, "q", "sum");
       m.add("Div", {"sum", "n"}, "loss");
     }},
    {"SumOverSize",
     [](ModelBuilder& m) {
       m.add("Size", {"q"}, "size");
       m.add("Cast", {"size"}, "count", {{"to", onnx::TensorProto::FLOAT}});
       total(m, "q", "sum");
       m.add("Div", {"sum", "count"}, "loss");
     }},
    {"WeightForEachSample",
     [](ModelBuilder& m) {
       repeat_weight(m);
       m.ints("rows", {3}, {-1, 1, 4});
       m.add("Reshape", {"q", "rows"}, "each");
       m.add("MatMul", {"each", "repeated"}, "product");
       m.add("ReduceMean", {"product"}, "loss", {{"keepdims", 0}});
     }},
    {"TableOfStepsFirst",  // rows of [4,N], flattened: place 0 for all samples, then place 1
     [](ModelBuilder& m) {
       m.weight("places", {4, 1}, {1, 2, 3, 4});
       m.ints("four", {1}, {4});
       m.ints("flat", {1}, {-1});
       m.add("Concat", {"four", "n_int"}, "sizes", {{"axis", 0}});
       m.add("Expand", {"places", "sizes"}, "everywhere");
       m.add("Reshape", {"everywhere", "flat"}, "table");
       ModelBuilder::set(m.node("Transpose", {"q"}, {"steps"}), "perm", std::vector<int64_t>{1, 0});
       m.add("Reshape", {"steps", "flat"}, "rows");
       m.add("Mul", {"rows", "table"}, "scaled");
       m.add("ReduceMean", {"scaled"}, "loss", {{"keepdims", 0}});
     }},
};

const Case kBefore[] = {
    {"DividedBySamples",
     [](ModelBuilder& m) {
       m.add("Div", {"q", "n"}, "each");
       total(m, "each", "loss");
     },
     "node_each"},
    {"TimesSamplesThenMean",
     [](ModelBuilder& m) {
       m.add("Mul", {"q", "n"}, "each");
       m.add("ReduceMean", {"each"}, "loss", {{"keepdims", 0}});
     },
     "node_each"},
    {"FilledWithSamples",
     [](ModelBuilder& m) {
       m.add("Shape", {"q"}, "shape");
       m.add("Expand", {"n", "shape"}, "filled");
       m.add("Add", {"q", "filled"}, "each");
       m.add("ReduceMean", {"each"}, "loss", {{"keepdims", 0}});
     },
     "node_each"},
    {"RowsThatLengthen",
     [](ModelBuilder& m) {
       m.ints("rows", {2}, {4, -1});
       m.add("Reshape", {"q", "rows"}, "wide");
       m.add("Softmax", {"wide"}, "p", {{"axis", 1}});
       m.add("Mul", {"p", "p"}, "pp");
       m.add("ReduceMean", {"pp"}, "loss", {{"keepdims", 0}});
     },
     "node_wide"},
    {"WeightTimesSamples",
     [](ModelBuilder& m) {
       m.add("Mul", {"w", "n"}, "wn");
       m.add("ReduceMean", {"wn"}, "decay", {{"keepdims", 0}});
       m.add("ReduceMean", {"q"}, "mean", {{"keepdims", 0}});
       m.add("Add", {"mean", "decay"}, "loss");
     },
     "node_wn"},
    {"WeightOnceForEachSample",
     [](ModelBuilder& m) {
       repeat_weight(m);
       total(m, "repeated", "decay");
       m.add("ReduceMean", {"q"}, "mean", {{"keepdims", 0}});
       m.add("Add", {"mean", "decay"}, "loss");
     },
     "node_decay"},
};

ModelBuilder start() {
  ModelBuilder m;
  m.input("x", {"N", "4"}).output("loss", {});
  std::vector<float> w(16);
  for (int i = 0; i < 16; ++i) w[i] = 0.125f * static_cast<float>(i * 5 % 7) - 0.25f;
  m.weight("w", {4, 4}, w);
  onnx::NodeProto& shape = m.node("Shape", {"x"}, {"n_int"});
  ModelBuilder::set(shape, "start", 0);
  ModelBuilder::set(shape, "end", 1);
  m.add("Cast", {"n_int"}, "n", {{"to", onnx::TensorProto::FLOAT}});
  m.add("MatMul", {"x", "w"}, "y");
  m.add("Mul", {"y", "y"}, "q");
  return m;
}

ImportOptions cut_into(int64_t micro_batches) {
  ImportOptions options = samples(kBatch / micro_batches);
  options.micro_batches = micro_batches;
  return options;
}

HostTensor data(int64_t first, int64_t count) {
  HostTensor x(DType::f32, {count, 4});
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, 0.5 + static_cast<double>((first * 4 + i) * 7 % 11) / 8);
  return x;
}

class SampleCount : public testing::TestWithParam<Case> {
 protected:
  std::string save(const TemporaryFolder& folder) const {
    ModelBuilder m = start();
    GetParam().build(m);
    return m.save(folder.file("m.onnx"));
  }
};
using SampleCountAfter = SampleCount;
using SampleCountBefore = SampleCount;

TEST_P(SampleCountAfter, TheSumIsCut) {
  TemporaryFolder folder;
  const std::string path = save(folder);
  const double whole = evaluate_loss(import_model(path, cut_into(1)), {{"x", data(0, kBatch)}});
  ASSERT_NE(whole, 0);
  for (const int64_t micro_batches : {2, 4, 8}) {
    const ImportedModel model = import_model(path, cut_into(micro_batches));
    const double pieces = evaluate_in_pieces(model, kBatch, micro_batches, [](int64_t first, int64_t count) { return data(first, count); });
    EXPECT_NEAR(pieces, whole, 1e-5 * std::abs(whole)) << micro_batches;
  }
}

TEST_P(SampleCountBefore, NeedsOneMicroBatch) {
  TemporaryFolder folder;
  const std::string path = save(folder);
  EXPECT_NO_THROW(evaluate_loss(import_model(path, cut_into(1)), {{"x", data(0, kBatch)}}));
  for (const int64_t micro_batches : {4, 8}) {
    const auto cut = [&] { import_model(path, cut_into(micro_batches)); };
    EXPECT_THAT(cut, ThrowsMessage<Error>(testing::AllOf(HasSubstr(GetParam().node), HasSubstr("use one micro-batch (--micro-batches 1)"))))
        << micro_batches;
  }
}

TEST(SampleCountOf, ScoresOfABuiltInLoss) {
  TemporaryFolder folder;
  ModelBuilder m = start();
  m.add("Div", {"q", "n"}, "scores");
  m.proto.mutable_graph()->mutable_output(0)->set_name("scores");
  for (int i = 0; i < 2; ++i) m.proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
  ImportOptions options = cut_into(4);
  options.loss = "mse(scores, target)";
  const std::string path = m.save(folder.file("m.onnx"));
  EXPECT_THAT([&] { import_model(path, options); }, ThrowsMessage<Error>(HasSubstr("node_scores")));
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Cases, SampleCountAfter, testing::ValuesIn(kAfter), kName);
INSTANTIATE_TEST_SUITE_P(Cases, SampleCountBefore, testing::ValuesIn(kBefore), kName);

}  // namespace
}  // namespace zeroplan
