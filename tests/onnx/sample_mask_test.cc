// Samples that do not count: what they hold does not matter, and the others make the loss that they would make alone.
#include <cmath>
#include <iterator>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  void (*build)(ModelBuilder&);  // from y [N,3] = x · w to loss
  std::string loss;
};

const Case kCases[] = {
    {"Mean",
     [](ModelBuilder& m) {
       m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"Sum",
     [](ModelBuilder& m) {
       m.add("ReduceSum", {"y"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"MeanOfMeansOverSamples",
     [](ModelBuilder& m) {
       m.ints("first", {1}, {0});
       m.add("ReduceMean", {"y", "first"}, "means", {{"keepdims", 0}});
       m.add("ReduceMean", {"means"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"MeanOfSums",
     [](ModelBuilder& m) {
       m.ints("last", {1}, {1});
       m.add("ReduceSum", {"y", "last"}, "sums", {{"keepdims", 0}});
       m.add("ReduceMean", {"sums"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"SamplesInFlatRows",
     [](ModelBuilder& m) {
       m.ints("flat", {1}, {-1});
       m.node("Reshape", {"y", "flat"}, {"rows"});
       m.add("ReduceMean", {"rows"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"SumOverTheNumberOfSamples",
     [](ModelBuilder& m) {
       m.ints("axis", {}, {0});
       m.add("ReduceSum", {"y"}, "total", {{"keepdims", 0}});
       m.node("Shape", {"x"}, {"shape"});
       m.node("Gather", {"shape", "axis"}, {"n"});
       m.add("Cast", {"n"}, "count", {{"to", onnx::TensorProto::FLOAT}});
       m.node("Div", {"total", "count"}, {"loss"});
     },
     ""},
    {"MeanAndATermOfTheWeights",
     [](ModelBuilder& m) {
       m.add("ReduceMean", {"y"}, "mean", {{"keepdims", 0}});
       m.add("ReduceSum", {"w"}, "decay", {{"keepdims", 0}});
       m.node("Add", {"decay", "mean"}, {"loss"});
     },
     ""},
    {"MeanOverTheDataThatCounts",
     [](ModelBuilder& m) {
       m.node("Mul", {"y", "x"}, {"weighted"});
       m.add("ReduceSum", {"weighted"}, "total", {{"keepdims", 0}});
       m.add("ReduceSum", {"x"}, "count", {{"keepdims", 0}});
       m.node("Div", {"total", "count"}, {"loss"});
     },
     ""},
    {"EntropyOfTheModel",
     [](ModelBuilder& m) {
       m.node("SoftmaxCrossEntropyLoss", {"y", "labels"}, {"loss"});
     },
     ""},
    {"EntropyOfEachSample",
     [](ModelBuilder& m) {
       ModelBuilder::set(m.node("SoftmaxCrossEntropyLoss", {"y", "labels"}, {"each"}), "reduction", "none");
       m.add("ReduceMean", {"each"}, "loss", {{"keepdims", 0}});
     },
     ""},
    {"BuiltInEntropy", [](ModelBuilder&) {}, "softmax_cross_entropy(y, labels)"},
    {"BuiltInSmoothEntropy", [](ModelBuilder&) {}, "softmax_cross_entropy(y, labels, label_smoothing=0.1, class_weights=1,2,3)"},
    {"BuiltInNll", [](ModelBuilder&) {}, "nll(y, labels)"},
    {"BuiltInError", [](ModelBuilder&) {}, "mse(y, x)"},
    {"BuiltInSum", [](ModelBuilder&) {}, "l1(y, x, reduction=sum)"},
    {"BuiltInCosine", [](ModelBuilder&) {}, "cosine(y, x)"},
};

ModelBuilder model_of(const Case& c) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).input("labels", {"N"}, onnx::TensorProto::INT64);
  m.weight("w", {3, 3}, {1, 0.5f, -1, 0.25f, 2, 0.5f, -0.5f, 1, 1});
  m.node("MatMul", {"x", "w"}, {"y"});
  c.build(m);
  c.loss.empty() ? m.output("loss", {}) : m.output("y", {"N", "3"});
  return m;
}

ImportOptions options_of(const Case& c, int64_t n, int64_t micro_batches) {
  ImportOptions options = samples(n);
  options.loss = c.loss;
  options.micro_batches = micro_batches;
  return options;
}

class Masked : public testing::TestWithParam<size_t> {};

// Six samples as four and a micro-batch of four with two that count.
TEST_P(Masked, WhatDoesNotCountDoesNotMatter) {
  const Case& c = kCases[GetParam()];
  TemporaryFolder folder;
  const std::string path = model_of(c).save(folder.file("m.onnx"));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows = {1, 2, 3, 2, 1, 0.5f, -1, 0, 1, 0.25f, 1, -1, 3, 1, 2, 0, 1, 1, kNan, kNan, kNan, kNan, kNan, kNan};
  const std::vector<int> labels = {2, 0, 1, 1, 0, 2, 1, 0};
  const auto batch = [&](int64_t first, int64_t count) {
    const std::vector<float> x(rows.begin() + 3 * first, rows.begin() + 3 * (first + count));
    const std::vector<int> y(labels.begin() + first, labels.begin() + first + count);
    return std::map<std::string, HostTensor>{{"x", HostTensor::of(DType::f32, {count, 3}, x)},
                                             {"labels", HostTensor::of(DType::i64, {count}, y)}};
  };
  const double expected = evaluate_loss(import_model(path, options_of(c, 6, 1)), batch(0, 6));
  for (const int64_t micro_batches : {1, 2}) {
    const ImportedModel four = import_model(path, options_of(c, 4, micro_batches));
    std::map<std::string, HostTensor> part = batch(4, 4);
    int masks = 0;
    for (const ImportedInput& input : four.inputs)
      if (input.mask) part[input.name] = HostTensor::of<int>(DType::boolean, {4}, {1, 1, 0, 0}), ++masks;
    ASSERT_EQ(masks, 1) << micro_batches;
    const LossParts first = evaluate_parts(four, batch(0, 4)), second = evaluate_parts(four, part);
    const double weight = four.graph.loss.weight == kNone ? 1 : first.weight + second.weight;
    EXPECT_NEAR((first.sum + second.sum) / weight, expected, 1e-6 * std::max(1.0, std::abs(expected))) << micro_batches;
  }
}

// Four samples with weights as the six that they stand for; the one without weight may hold anything.
TEST_P(Masked, AWeightIsHowOftenASampleCounts) {
  const Case& c = kCases[GetParam()];
  TemporaryFolder folder;
  const std::string path = model_of(c).save(folder.file("m.onnx"));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows = {1, 2, 3, kNan, kNan, kNan, -1, 0, 1, 0.25f, 1, -1};
  const std::vector<int> labels = {2, 0, 1, 1};
  const std::vector<double> weights = {2, 0, 1, 3};
  const auto batch = [&](const std::vector<int>& samples) {
    std::vector<float> x;
    std::vector<int> y;
    std::vector<double> w;
    for (const int i : samples) {
      x.insert(x.end(), rows.begin() + 3 * i, rows.begin() + 3 * (i + 1));
      y.push_back(labels[i]);
      w.push_back(weights[i]);
    }
    const auto count = static_cast<int64_t>(samples.size());
    return std::map<std::string, HostTensor>{{"x", HostTensor::of(DType::f32, {count, 3}, x)},
                                             {"labels", HostTensor::of(DType::i64, {count}, y)},
                                             {"often", HostTensor::of(DType::f64, {count}, w)}};
  };
  const double expected = evaluate_loss(import_model(path, options_of(c, 6, 1)), batch({0, 0, 2, 3, 3, 3}));
  for (const auto& pieces : std::vector<std::vector<std::vector<int>>>{{{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0}, {1}, {2}, {3}}}) {
    ImportOptions options = options_of(c, static_cast<int64_t>(pieces[0].size()), static_cast<int64_t>(pieces.size()));
    options.sample_weight = "often";
    const ImportedModel model = import_model(path, options);
    LossParts all;
    for (const std::vector<int>& piece : pieces) {
      const LossParts part = evaluate_parts(model, batch(piece));
      all.sum += part.sum;
      all.weight += part.weight;
    }
    const double weight = model.graph.loss.weight == kNone ? 1 : all.weight;
    EXPECT_NEAR(all.sum / weight, expected, 1e-6 * std::max(1.0, std::abs(expected))) << pieces.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Masked, testing::Range<size_t>(0, std::size(kCases)),
                         [](const auto& info) { return kCases[info.param].name; });

// The labels' range is what it was: the mask adds no label that counts as ignored.
TEST(SampleMask, LabelsKeepTheirRange) {
  TemporaryFolder folder;
  for (const char* loss : {"", "softmax_cross_entropy(y, labels, ignore_index=7)", "nll(y, labels, ignore_index=7)"}) {
    const Case c{"", [](ModelBuilder& m) { m.node("SoftmaxCrossEntropyLoss", {"y", "labels"}, {"loss"}); }, loss};
    for (const ImportedInput& input : import_model(model_of(c).save(folder.file("m.onnx")), options_of(c, 2, 1)).inputs) {
      if (input.name != "labels") continue;
      EXPECT_TRUE(input.label) << loss;
      EXPECT_EQ(input.limit, 3) << loss;
      EXPECT_EQ(input.has_ignored, c.loss != "") << loss;
    }
  }
}

// One sample per micro-batch: it counts, or the micro-batch is not run.
TEST(SampleMask, OneSampleNeedsNone) {
  TemporaryFolder folder;
  const Case& c = kCases[0];
  for (const ImportedInput& input : import_model(model_of(c).save(folder.file("m.onnx")), options_of(c, 1, 4)).inputs)
    EXPECT_FALSE(input.mask);
}

void subtract_mean_of_samples(ModelBuilder& m) {
  m.ints("first", {1}, {0});
  m.node("ReduceMean", {"y", "first"}, {"centre"});
  m.node("Sub", {"y", "centre"}, {"rest"});
}

TEST(SampleMask, WhatMixesSamplesIsReported) {
  TemporaryFolder folder;
  const Case c{"",
               [](ModelBuilder& m) {
                 subtract_mean_of_samples(m);
                 m.node("Mul", {"rest", "rest"}, {"square"});
                 m.add("ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
               },
               ""};
  const ImportedModel model = import_model(model_of(c).save(folder.file("m.onnx")), options_of(c, 4, 1));
  for (const ImportedInput& input : model.inputs) EXPECT_FALSE(input.mask);
  EXPECT_THAT(model.report, testing::Contains(testing::AllOf(HasSubstr("a last batch that is not full is left out"), HasSubstr("rest"))));
}

TEST(SampleWeight, NeedsSamplesApart) {
  TemporaryFolder folder;
  const Case c{"",
               [](ModelBuilder& m) {
                 subtract_mean_of_samples(m);
                 m.add("ReduceMean", {"rest"}, "loss", {{"keepdims", 0}});
               },
               ""};
  ImportOptions options = options_of(c, 4, 1);
  options.sample_weight = "often";
  const std::string path = model_of(c).save(folder.file("m.onnx"));
  EXPECT_THAT(message([&] { import_model(path, options); }), testing::AllOf(HasSubstr("--sample-weight"), HasSubstr("node_rest")));
  options = options_of(kCases[0], 4, 1);
  options.sample_weight = "w";
  EXPECT_THAT(message([&] { import_model(model_of(kCases[0]).save(folder.file("m.onnx")), options); }),
              HasSubstr("'w' is a value of the model"));
}

// A divisor that is the same in each micro-batch makes no mean: the sum over samples stays one.
TEST(SampleMask, ADivisorWithoutSamplesIsAFactor) {
  TemporaryFolder folder;
  const Case c{"",
               [](ModelBuilder& m) {
                 m.input("scale", {"3"});
                 m.add("ReduceSum", {"y"}, "total", {{"keepdims", 0}});
                 m.add("ReduceSum", {"scale"}, "divisor", {{"keepdims", 0}});
                 m.node("Div", {"total", "divisor"}, {"loss"});
               },
               ""};
  ImportOptions options = options_of(c, 2, 2);
  options.sample_axes = {{"scale", -1}};
  const ImportedModel model = import_model(model_of(c).save(folder.file("m.onnx")), options);
  EXPECT_EQ(model.graph.loss.weight, kNone);
}

TEST(SampleMask, TermsWithOtherDenominatorsNeedOneMicroBatch) {
  TemporaryFolder folder;
  const Case c{"",
               [](ModelBuilder& m) {
                 m.node("SoftmaxCrossEntropyLoss", {"y", "labels"}, {"entropy"});
                 m.add("ReduceMean", {"y"}, "level", {{"keepdims", 0}});
                 m.node("Add", {"entropy", "level"}, {"loss"});
               },
               ""};
  const std::string path = model_of(c).save(folder.file("m.onnx"));
  const std::string refused = message([&] { import_model(path, options_of(c, 2, 2)); });
  for (const char* part : {"node_entropy", "node_level", "different denominators"}) EXPECT_THAT(refused, HasSubstr(part));
  const ImportedModel four = import_model(path, options_of(c, 4, 1)), two = import_model(path, options_of(c, 2, 1));
  const HostTensor x = HostTensor::of<float>(DType::f32, {4, 3}, {1, 2, 3, 2, 1, 0, 9, 9, 9, 8, 8, 8}),
                   half = HostTensor::of<float>(DType::f32, {2, 3}, {1, 2, 3, 2, 1, 0});
  const HostTensor labels = HostTensor::of<int64_t>(DType::i64, {4}, {0, 1, 2, 2}), some = HostTensor::of<int64_t>(DType::i64, {2}, {0, 1});
  std::map<std::string, HostTensor> inputs = {{"x", x}, {"labels", labels}};
  for (const ImportedInput& input : four.inputs)
    if (input.mask) inputs[input.name] = HostTensor::of<int>(DType::boolean, {4}, {1, 1, 0, 0});
  EXPECT_NEAR(evaluate_loss(four, inputs), evaluate_loss(two, {{"x", half}, {"labels", some}}), 1e-5);
}

}  // namespace
}  // namespace zeroplan
