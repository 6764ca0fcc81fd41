// The stored models against their golden files: parameters, ties, splits, and the loss before training.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "graph/ops/verify_graph.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/npy.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

struct Case {
  const char* name;
  const char* loss;
  std::map<std::string, int64_t> dims;
};

std::string folder(const std::string& model) { return std::string(kSourceFolder) + "/tests/models/" + model; }

nlohmann::json golden(const std::string& model) {
  std::ifstream file(folder(model) + "/golden.json");
  return nlohmann::json::parse(file);
}

ImportOptions options_of(const Case& c) {
  ImportOptions options;
  options.samples = 8;
  options.loss = c.loss;
  options.dims = c.dims;
  options.precision = DType::f64;
  return options;
}

class StoredModel : public testing::TestWithParam<Case> {};

// Every torch parameter is one parameter of ours over the same initializers.
TEST_P(StoredModel, ParametersAreTorchs) {
  const nlohmann::json params = golden(GetParam().name).at("params");
  const ImportedModel model = import_model(folder(GetParam().name) + "/model.onnx", options_of(GetParam()));
  std::multiset<std::set<std::string>> expected, found;
  for (const auto& [name, entry] : params.items()) {
    std::set<std::string> initializers;
    for (const auto& pair : entry.at("onnx")) initializers.insert(pair.at(0).get<std::string>());
    expected.insert(initializers);
  }
  for (const Parameter& p : model.graph.parameters) {
    EXPECT_TRUE(p.trainable) << p.name;
    std::set<std::string> initializers = {p.source.initializer};
    for (const ParameterAlias& alias : p.aliases) initializers.insert(alias.initializer);
    found.insert(initializers);
  }
  EXPECT_EQ(found, expected);
}

TEST_P(StoredModel, NamesAreTorchs) {
  const nlohmann::json params = golden(GetParam().name).at("params");
  const ImportedModel model = import_model(folder(GetParam().name) + "/model.onnx", options_of(GetParam()));
  for (const Parameter& p : model.graph.parameters)
    EXPECT_TRUE(params.contains(p.name) || p.name == "net.head.weight") << p.name;  // a tied table is named after either of its uses
}

TEST_P(StoredModel, LossBeforeTraining) {
  const ImportedModel model = import_model(folder(GetParam().name) + "/model.onnx", options_of(GetParam()));
  std::map<std::string, HostTensor> inputs;
  for (const ImportedInput& input : model.inputs) {
    if (input.mask) continue;
    EXPECT_EQ(input.sample_axis, 0) << input.name;
    inputs[input.name] = rows_of(read_npy(folder(GetParam().name) + "/data/" + input.name + ".npy"), 0, 8);
  }
  EXPECT_EQ(inputs.size(), 2u);
  EXPECT_NEAR(evaluate_loss(model, inputs), golden(GetParam().name).at("losses").at(0).get<double>(), 1e-6);
}

TEST_P(StoredModel, GraphIsSound) {
  ImportOptions options = options_of(GetParam());
  options.precision = DType::f32;
  const ImportedModel model = import_model(folder(GetParam().name) + "/model.onnx", options);
  EXPECT_NO_THROW(verify_graph(model.graph));
  for (const Value& value : model.graph.values) EXPECT_NE(value.dtype, DType::f64) << value.name;
  EXPECT_EQ(model.model_digest.size(), 32u);
  EXPECT_EQ(model.model_digest, import_model(folder(GetParam().name) + "/model.onnx", options).model_digest);
}

INSTANTIATE_TEST_SUITE_P(Models, StoredModel,
                         testing::Values(Case{"mlp", "", {}}, Case{"gpt2_nano_dynamo", "", {}}, Case{"gpt2_nano_ts", "", {}},
                                         Case{"gpt2_nano_logits", "softmax_cross_entropy(logits, labels)", {{"seq", 16}}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zeroplan
