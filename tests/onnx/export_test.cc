// Trained weights written back: same graph, same ties, splits as initializers of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onnx/checker.h>

#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

struct Case {
  const char* name;
  const char* loss;
  std::map<std::string, int64_t> dims;
};

ImportOptions options_of(const Case& c) {
  ImportOptions options;
  options.samples = 8;
  options.loss = c.loss;
  options.dims = c.dims;
  return options;
}

// A value for each element of each parameter, different between parameters.
float trained(int parameter, int64_t element) { return static_cast<float>(0.01 * parameter + 1e-4 * static_cast<double>(element % 97)); }

// Gives them in the opposite order of the table, as no caller owes an order.
GiveParameters give_trained(const ImportedModel& model) {
  return [&model](const TakeParameter& take) {
    for (int index = static_cast<int>(model.graph.parameters.size()) - 1; index >= 0; --index) {
      std::vector<float> values(elements(model.graph.parameters[index].shape));
      for (size_t i = 0; i < values.size(); ++i) values[i] = trained(index, static_cast<int64_t>(i));
      take(index, std::as_bytes(std::span(values)));
    }
  };
}

class ExportedModel : public testing::TestWithParam<Case> {
 protected:
  std::string source() const { return std::string(kSourceFolder) + "/tests/models/" + GetParam().name + "/model.onnx"; }
  TemporaryFolder folder;
};

TEST_P(ExportedModel, ReimportFindsTheSameParametersWithNewValues) {
  const ImportedModel before = import_model(source(), options_of(GetParam()));
  const std::string path = folder.file("trained.onnx");
  export_model(source(), path, before.graph.parameters, give_trained(before));
  EXPECT_NO_THROW(onnx::checker::check_model(path));
  const ImportedModel after = import_model(path, options_of(GetParam()));
  ASSERT_EQ(after.graph.parameters.size(), before.graph.parameters.size());
  WeightFiles files(path);
  for (size_t i = 0; i < before.graph.parameters.size(); ++i) {
    const Parameter& p = before.graph.parameters[i];
    const auto same =
        std::find_if(after.graph.parameters.begin(), after.graph.parameters.end(), [&](const Parameter& q) { return q.name == p.name; });
    ASSERT_NE(same, after.graph.parameters.end()) << p.name;
    EXPECT_EQ(same->aliases.size(), p.aliases.size()) << p.name;
    std::vector<float> values(elements(p.shape));
    read_weight(files, same->source, 0, static_cast<int64_t>(values.size()), DType::f32, values.data());
    for (size_t k = 0; k < values.size(); ++k)
      ASSERT_EQ(values[k], trained(static_cast<int>(i), static_cast<int64_t>(k))) << p.name << " " << k;
  }
}

// The exported file computes what the imported graph computes with the same weights.
TEST_P(ExportedModel, TheFileComputesTheTrainedLoss) {
  const ImportedModel before = import_model(source(), options_of(GetParam()));
  const std::string path = folder.file("trained.onnx");
  export_model(source(), path, before.graph.parameters, give_trained(before));
  std::map<std::string, HostTensor> data;
  std::map<ValueId, HostTensor> values;
  for (const ImportedInput& input : before.inputs) {
    if (input.mask) {
      data[input.name] = HostTensor::of(DType::boolean, {8}, std::vector<int>(8, 1));
      values[input.value] = data[input.name];
      continue;
    }
    data[input.name] = first_rows(std::string(kSourceFolder) + "/tests/models/" + GetParam().name + "/data/" + input.name + ".npy", 8);
    values[input.value] = data[input.name];
  }
  for (size_t i = 0; i < before.graph.values.size(); ++i) {
    const Value& value = before.graph.values[i];
    if (value.kind != ValueKind::parameter) continue;
    HostTensor weight(DType::f32, value.shape);
    for (int64_t k = 0; k < weight.count(); ++k) weight.set(k, trained(value.parameter, k));
    values[static_cast<ValueId>(i)] = weight;
  }
  evaluate_program(before.graph, Program::micro_step, values);
  const Loss& loss = before.graph.loss;
  const double weight = before.graph.value(loss.weight).kind == ValueKind::constant ? before.graph.value(loss.weight).constant.get(0)
                                                                                    : values.at(loss.weight).get(0);
  EXPECT_NEAR(evaluate_loss(import_model(path, options_of(GetParam())), data), values.at(loss.sum).get(0) / weight, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, ExportedModel,
                         testing::Values(Case{"mlp", "", {}}, Case{"gpt2_nano_dynamo", "", {}}, Case{"gpt2_nano_ts", "", {}},
                                         Case{"gpt2_nano_logits", "softmax_cross_entropy(logits, labels)", {{"seq", 16}}}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Export, UntrainedValuesGiveTheSameGraph) {
  TemporaryFolder folder;
  const std::string source = std::string(kSourceFolder) + "/tests/models/gpt2_nano_logits/model.onnx";
  ImportOptions options = options_of({"", "softmax_cross_entropy(logits, labels)", {{"seq", 16}}});
  const ImportedModel model = import_model(source, options);
  WeightFiles files(source);
  export_model(source, folder.file("model.onnx"), model.graph.parameters, [&](const TakeParameter& take) {
    for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
      const WeightSource& from = model.graph.parameters[i].source;
      std::vector<std::byte> bytes(from.bytes);
      files.read(from.file, from.offset, from.bytes, bytes.data());
      take(static_cast<int>(i), bytes);
    }
  });
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  EXPECT_EQ(read(folder.file("model.onnx.data")), read(source + ".data"));
  onnx::ModelProto before, after;
  ASSERT_TRUE(before.ParseFromString(read(source)));
  ASSERT_TRUE(after.ParseFromString(read(folder.file("model.onnx"))));
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString());
}

TEST(Export, ConstantNodesAndTypedDataAreWrittenBack) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "8"}).output("loss", {});
  m.constant("w", {8, 8}, std::vector<float>(64, 0.5f));
  onnx::TensorProto& b = m.weight("b", {8}, {});
  b.clear_raw_data();
  for (int i = 0; i < 8; ++i) b.add_float_data(static_cast<float>(i));
  m.node("MatMul", {"x", "w"}, {"xw"});
  m.node("Add", {"xw", "b"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  ImportOptions options;
  options.samples = 2;
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  ASSERT_EQ(model.graph.parameters.size(), 2u);
  export_model(folder.file("m.onnx"), folder.file("out.onnx"), model.graph.parameters, give_trained(model));
  EXPECT_NO_THROW(onnx::checker::check_model(folder.file("out.onnx")));
  const ImportedModel after = import_model(folder.file("out.onnx"), options);
  WeightFiles files(folder.file("out.onnx"));
  for (int i = 0; i < 2; ++i) {
    float last = 0;
    const Parameter& p = after.graph.parameters[i];
    read_weight(files, p.source, elements(p.shape) - 1, 1, DType::f32, &last);
    EXPECT_EQ(last, trained(i, elements(p.shape) - 1));
  }
}

TEST(Export, AFailureLeavesNothingBehind) {
  TemporaryFolder folder;
  const std::string source = std::string(kSourceFolder) + "/tests/models/gpt2_nano_logits/model.onnx";
  const ImportedModel model = import_model(source, options_of({"", "softmax_cross_entropy(logits, labels)", {{"seq", 16}}}));
  const auto failing = [&](const TakeParameter& take) {
    for (int i = 0; i < 20; ++i) take(i, std::vector<std::byte>(model.graph.parameters[i].source.bytes));
    throw Error("no more");
  };
  EXPECT_THROW(export_model(source, folder.file("out.onnx"), model.graph.parameters, failing), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Viewer, WritesEveryNode) {
  TemporaryFolder folder;
  ImportOptions options;
  options.samples = 2;
  const ImportedModel model = import_model(small_regression().save(folder.file("m.onnx")), options);
  write_viewer_model(model.graph, folder.file("view.onnx"));
  onnx::ModelProto view;
  std::ifstream file(folder.file("view.onnx"), std::ios::binary);
  ASSERT_TRUE(view.ParseFromIstream(&file));
  EXPECT_EQ(view.graph().node_size(), static_cast<int>(model.graph.nodes.size()));
  EXPECT_EQ(view.graph().node(0).domain(), "ai.zeroplan");
}

}  // namespace
}  // namespace zeroplan
