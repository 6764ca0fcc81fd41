// Attributes and constants that ask for too much: refused before anything of that size is made or walked through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/importer.h"
#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 39, kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

HostTensor number(int64_t value) { return integers({}, {value}); }
HostTensor list(const std::vector<int64_t>& values) { return integers({static_cast<int64_t>(values.size())}, values); }

// A node over inputs of any size, of which there are no values.
class Sized {
 public:
  explicit Sized(const std::string& op, int opset = 22) : m_(opset) {
    node_.set_op_type(op);
    node_.set_name("node");
    node_.add_output("y");
  }
  Sized& domain(const std::string& name) {
    node_.set_domain(name);
    auto& import = *m_.proto.add_opset_import();
    import.set_domain(name);
    import.set_version(1);
    return *this;
  }
  Sized& input(const std::vector<int64_t>& dims, int type = onnx::TensorProto::FLOAT) {
    std::vector<std::string> texts;
    for (const int64_t dim : dims) texts.push_back(std::to_string(dim));
    m_.input(next(), texts, type);
    return *this;
  }
  Sized& constant(const HostTensor& values) {
    onnx::TensorProto& tensor = *m_.proto.mutable_graph()->add_initializer();
    tensor.set_name(next());
    tensor.set_data_type(is_floating(values.dtype()) ? onnx::TensorProto::DOUBLE : onnx::TensorProto::INT64);
    for (const int64_t dim : values.shape()) tensor.add_dims(dim);
    tensor.set_raw_data(values.data(), static_cast<size_t>(values.bytes()));
    return *this;
  }
  template <typename Value>
  Sized& set(const std::string& name, const Value& value) {
    ModelBuilder::set(node_, name, value);
    return *this;
  }
  // Of the import of y; empty where it says nothing.
  std::string refusal() {
    *m_.proto.mutable_graph()->add_node() = node_;
    m_.output("y", {});
    TemporaryFolder folder;
    ImportOptions options;
    options.outputs = {"y"};
    try {
      import_model(m_.save(folder.file("m.onnx")), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::string next() {
    node_.add_input("x" + std::to_string(node_.input_size()));
    return node_.input(node_.input_size() - 1);
  }
  ModelBuilder m_;
  onnx::NodeProto node_;
};

TEST(HostileSizes, TablesHaveALimit) {
  EXPECT_THAT(OneNode("OneHot").input(list({0})).constant(number(kHuge)).constant(reals({2}, {0, 1})).refusal(), HasSubstr("a table of"));
  EXPECT_THAT(OneNode("Pad").input(reals({1}, {1})).constant(list({kHuge, 0})).set("mode", "edge").refusal(), HasSubstr("a table of"));
  EXPECT_THAT(OneNode("HannWindow").constant(number(kHuge)).refusal(), HasSubstr("a table of"));
  EXPECT_THAT(OneNode("DFT", 21).input(reals({1, 4096, 1}, std::vector<double>(4096, 1))).constant(number(1 << 20)).refusal(),
              HasSubstr("a table of"));
  EXPECT_THAT(Sized("STFT").input({1, kHuge, 1}).constant(number(1)).constant(reals({3}, {1, 1, 1})).refusal(), HasSubstr("more than"));
  EXPECT_THAT(OneNode("AffineGrid").input(reals({1, 2, 3}, {1, 0, 0, 0, 1, 0})).constant(list({1, 1, 65536, 65536})).refusal(),
              HasSubstr("a table of"));
  EXPECT_THAT(Sized("Trilu").input({65536, 65536}).refusal(), HasSubstr("a table of"));
  EXPECT_THAT(Sized("EyeLike").input({65536, 65536}).refusal(), HasSubstr("a table of"));
  EXPECT_THAT(Sized("Hardmax").input({1, kHuge}).refusal(), HasSubstr("a table of"));
}

TEST(HostileSizes, TablesOfOtherOperators) {
  const auto mel = [](int64_t bands, int64_t length) {
    OneNode node("MelWeightMatrix");
    node.constant(number(bands)).constant(number(length)).constant(number(8192));
    return node.constant(reals({}, {0})).constant(reals({}, {4096})).refusal();
  };
  EXPECT_THAT(mel(kHuge, 16), HasSubstr("more than"));
  EXPECT_THAT(mel(2, kMost), HasSubstr("more than"));
  OneNode blocks("Col2Im");
  blocks.input(reals({1, 1, 4}, {1, 2, 3, 4})).constant(list({1 << 15, 1 << 15})).constant(list({1, 1}));
  EXPECT_THAT(blocks.refusal(), HasSubstr("a table of"));
  OneNode regions("RoiAlign");
  regions.input(reals({1, 1, 2, 2}, {1, 2, 3, 4})).input(reals({1, 4}, {0, 0, 1, 1})).input(integers({1}, {0}));
  EXPECT_THAT(regions.set("sampling_ratio", kHuge).refusal(), HasSubstr("a table of"));
  OneNode grams("TfIdfVectorizer");
  grams.input(integers({3}, {1, 2, 1})).set("mode", "TF").set("min_gram_length", 1).set("max_gram_length", 1).set("max_skip_count", 0);
  EXPECT_THAT(grams.refusal(), HasSubstr("ngram_indexes"));
}

TEST(HostileSizes, ResizedAxesHaveALimit) {
  const auto sized = [](int64_t size) {
    return OneNode("Resize").input(reals({1}, {1})).absent().absent().constant(list({size})).refusal();
  };
  EXPECT_THAT(sized(kHuge), HasSubstr("not supported"));
  EXPECT_THAT(sized(kMost), HasSubstr("not supported"));
  const auto scaled = [](double scale, const char* mode) {
    OneNode node("Resize");
    node.input(reals({1, 3}, {1, 2, 3})).absent().constant(reals({2}, {1, scale})).set("mode", mode).set("antialias", 1);
    return node.refusal();
  };
  EXPECT_THAT(scaled(1e30, "linear"), HasSubstr("64 bits"));
  EXPECT_EQ(scaled(1e-30, "linear"), "");  // an axis without elements
  OneNode twice("Resize");
  twice.input(reals({2}, {1, 2})).absent().absent().constant(list({3, 3}));
  EXPECT_THAT(twice.refusal(), HasSubstr("one entry per axis"));
}

TEST(HostileSizes, LoopsOverStepsHaveALimit) {
  const auto recurrent = [](int64_t steps) {
    Sized node("RNN");
    node.input({steps, 1, 2}).constant(reals({1, 1, 2}, {1, 1})).constant(reals({1, 1, 1}, {1})).set("hidden_size", 1);
    return node.refusal();
  };
  EXPECT_THAT(recurrent(kHuge), HasSubstr("unrolling"));
  EXPECT_EQ(recurrent(3), "");
  OneNode split("Split");
  split.input(reals({4}, {1, 2, 3, 4})).set("num_outputs", kHuge);
  EXPECT_THAT(split.refusal(), HasSubstr("num_outputs"));
}

TEST(HostileSizes, WindowsAreCountedAtOnce) {
  const auto pool = [](const char* op, int64_t kernel, int64_t pad, int64_t dilation, int include) {
    Sized node(op);
    node.input({1, 1, 8}).set("kernel_shape", std::vector<int64_t>{kernel}).set("pads", std::vector<int64_t>{pad, pad});
    node.set("dilations", std::vector<int64_t>{dilation});
    if (std::string(op) == "AveragePool") node.set("count_include_pad", int64_t{include});
    return node.refusal();
  };
  const int64_t large = int64_t{1} << 30;
  EXPECT_EQ(pool("AveragePool", large, large / 2, 1, 0), "");
  EXPECT_EQ(pool("AveragePool", large, large / 2, 1, 1), "");
  EXPECT_EQ(pool("MaxPool", large, large / 2, 1, 1), "");
  EXPECT_THAT(pool("MaxPool", 2, 8, 1, 1), HasSubstr("window 0 lies in the padding"));
  EXPECT_THAT(pool("MaxPool", 3, 12, 9, 1), HasSubstr("window 2 lies in the padding"));  // at places -10, -1 and 8
  EXPECT_THAT(pool("AveragePool", 2, large, large, 0), HasSubstr("padding"));
  EXPECT_THAT(Sized("MaxPool").input({1, 1, kHuge}).set("kernel_shape", std::vector<int64_t>{2}).refusal(), "");
}

TEST(HostileSizes, IntegersAtTheEndsOfTheirRange) {
  const HostTensor x = reals({1, 2}, {1, 2});
  EXPECT_THAT(OneNode("Pad").input(x).constant(list({kLeast, 0, 0, 0})).refusal(), HasSubstr("padding"));
  EXPECT_THAT(OneNode("Pad").input(x).constant(list({kMost, kMost, kMost, kMost})).refusal(), HasSubstr("padding"));
  EXPECT_THAT(OneNode("CenterCropPad").input(x).constant(list({kLeast, 1})).refusal(), HasSubstr("negative"));
  EXPECT_THAT(OneNode("CenterCropPad").input(x).constant(list({kMost, 1})).refusal(), HasSubstr("more than"));
  EXPECT_THAT(OneNode("ReverseSequence").input(x).input(list({1, 1})).set("batch_axis", kMost).set("time_axis", kLeast + 2).refusal(),
              HasSubstr("are not 0 and 1"));
  EXPECT_THAT(OneNode("Tile").input(x).constant(list({kMost, 3})).refusal(), HasSubstr("more than"));
  EXPECT_THAT(OneNode("Expand").input(x).constant(list({kMost, 1, 2})).refusal(), HasSubstr("more than"));
  EXPECT_THAT(OneNode("Cast").input(x).set("to", (int64_t{1} << 32) + 1).refusal(), HasSubstr("no element type"));
  EXPECT_THAT(OneNode("DepthToSpace").input(reals({1, 1, 1, 1}, {1})).set("blocksize", int64_t{1} << 32).refusal(), HasSubstr("blocksize"));
  EXPECT_EQ(OneNode("EyeLike").input(x).set("k", kLeast).refusal(), "");
  EXPECT_THAT(OneNode("GroupNormalization")
                  .input(reals({1, 0, 1}, {}))
                  .constant(reals({0}, {}))
                  .constant(reals({0}, {}))
                  .set("num_groups", kMost)
                  .refusal(),
              HasSubstr("groups"));
}

TEST(HostileSizes, RangesWrapNothing) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    return OneNode("Range").constant(number(start)).constant(number(limit)).constant(number(delta));
  };
  EXPECT_EQ(difference(range(kLeast, kMost, int64_t{1} << 62).value().cast(DType::f64), {4}, {-0x1p63, -0x1p62, 0, 0x1p62}), "");
  EXPECT_EQ(difference(range(kMost, kLeast, kLeast).value().cast(DType::f64), {2}, {0x1p63, -1}), "");
  EXPECT_THAT(range(kLeast, kMost, 1).refusal(), HasSubstr("more than"));
  const auto reals_to = [](double limit) {
    return OneNode("Range").constant(reals({}, {0})).constant(reals({}, {limit})).constant(reals({}, {1})).refusal();
  };
  EXPECT_THAT(reals_to(std::numeric_limits<double>::infinity()), HasSubstr("64 bits"));
  EXPECT_THAT(reals_to(std::numeric_limits<double>::quiet_NaN()), HasSubstr("64 bits"));
  EXPECT_THAT(reals_to(1e30), HasSubstr("64 bits"));
}

TEST(HostileSizes, OneNumberIsOneNumber) {
  const HostTensor none = integers({0}, {}), nothing = reals({0}, {});
  EXPECT_THAT(OneNode("HannWindow").constant(none).refusal(), HasSubstr("one number"));
  EXPECT_THAT(OneNode("OneHot").input(list({0})).constant(none).constant(reals({2}, {0, 1})).refusal(), HasSubstr("one number"));
  EXPECT_THAT(OneNode("DFT", 21).input(reals({1, 2, 1}, {1, 2})).constant(none).refusal(), HasSubstr("one number"));
  EXPECT_THAT(OneNode("Dropout").input(reals({1}, {1})).constant(nothing).refusal(), HasSubstr("one number"));
  EXPECT_THAT(OneNode("Pad").input(reals({1}, {1})).constant(list({1, 1})).constant(nothing).refusal(), HasSubstr("one number"));
  EXPECT_THAT(OneNode("OneHot").input(list({0})).constant(number(3)).constant(reals({}, {1})).refusal(), HasSubstr("has no axis"));
}

TEST(HostileSizes, OperandsWithoutTheAxisThatIsRead) {
  Sized joined("ConcatTraining");
  EXPECT_THAT(joined.domain("com.microsoft").input({2, 3}).input({2}).set("axis", 1).refusal(), HasSubstr("shape"));
  Sized entropy("SoftmaxCrossEntropyLossGrad");
  entropy.domain("com.microsoft").input({}).input({3}).input({3}, onnx::TensorProto::INT64);
  EXPECT_THAT(entropy.refusal(), HasSubstr("class axis"));
}

// Between two integers that no double tells apart.
TEST(HostileSizes, FilledIntegersKeepTheirBits) {
  onnx::NodeProto node;
  Sized filled("ConstantOfShape");
  ModelBuilder m(22);
  onnx::NodeProto& fill = m.node("ConstantOfShape", {"shape"}, {"y"});
  onnx::AttributeProto& value = *fill.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data(kMost - 1);
  onnx::TensorProto& shape = *m.proto.mutable_graph()->add_initializer();
  shape.set_name("shape");
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(1);
  shape.add_int64_data(3);
  m.output("y", {});
  TemporaryFolder folder;
  ImportOptions options;
  options.outputs = {"y"};
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  EXPECT_EQ(model.graph.value(model.outputs.at(0).value).constant.to_ints(), (std::vector<int64_t>(3, kMost - 1)));
}

}  // namespace
}  // namespace zeroplan
