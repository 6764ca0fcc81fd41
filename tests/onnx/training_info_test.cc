// Models that state how they are trained: TrainingInfoProto, and graphs that hold their own backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kTrainingDomain = "ai.onnx.preview.training";

onnx::AttributeProto& attribute(onnx::NodeProto& node, const std::string& name, onnx::AttributeProto::AttributeType type) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}

void set_number(onnx::NodeProto& node, const std::string& name, float value) {
  attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& domain, const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  auto& node = *graph.add_node();
  node.set_domain(domain);
  node.set_op_type(op);
  node.set_name(op + "_" + outputs[0]);
  for (const std::string& name : inputs) node.add_input(name);
  for (const std::string& name : outputs) node.add_output(name);
  return node;
}

// small_regression, of which w is trained by what the test adds to the algorithm; b stays as it is.
struct TrainingModel {
  explicit TrainingModel(const std::string& loss = "loss") {
    model.proto.add_opset_import()->set_domain(kTrainingDomain);
    model.proto.mutable_opset_import(1)->set_version(1);
    info = model.proto.add_training_info();
    info->mutable_algorithm()->set_name("step");
    auto& gradient = add_node(*info->mutable_algorithm(), kTrainingDomain, "Gradient", {"w"}, {"dw"});
    attribute(gradient, "xs", onnx::AttributeProto::STRINGS).add_strings("w");
    attribute(gradient, "y", onnx::AttributeProto::STRING).set_s(loss);
    number("rate", 0.25f);
    auto& steps = *info->mutable_algorithm()->add_initializer();
    steps.set_name("steps");
    steps.set_data_type(onnx::TensorProto::INT64);
    steps.add_int64_data(0);
    update("w", "w_new");
  }
  void number(const std::string& name, float value) {
    auto& tensor = *info->mutable_algorithm()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(value);
  }
  void update(const std::string& key, const std::string& value) {
    auto& binding = *info->add_update_binding();
    binding.set_key(key);
    binding.set_value(value);
  }
  onnx::NodeProto& step(const std::string& domain, const std::string& op, const std::vector<std::string>& inputs) {
    return add_node(*info->mutable_algorithm(), domain, op, inputs, {"w_new"});
  }

  ModelBuilder model = small_regression();
  onnx::TrainingInfoProto* info;
};

double loss_of(const ImportedModel& model) {
  return evaluate_loss(model, {{"x", HostTensor::of<float>(DType::f32, {2, 3}, {1, 0, 2, 3, 1, -1})}});
}

StatedOptimizer optimizer_of(const TrainingModel& m) {
  TemporaryFolder folder;
  const ModelFile file(m.model.save(folder.file("m.onnx")));
  return file.stated_optimizer() ? *file.stated_optimizer() : StatedOptimizer{};
}

TEST(TrainingInfo, GradientNamesLossAndTrainedTensors) {
  TemporaryFolder folder;
  TrainingModel m;
  m.model.output("y", {"N", "2"});
  m.step(kTrainingDomain, "Adam", {"rate", "steps", "w", "dw", "v", "h"});
  const ImportedModel model = import_model(m.model.save(folder.file("m.onnx")), samples(2));
  EXPECT_EQ(loss_of(model), loss_of(import_model(small_regression().save(folder.file("plain.onnx")), samples(2))));
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  EXPECT_EQ(model.graph.parameters[0].name, "w");
  EXPECT_THAT(model.report, Contains(HasSubstr("1 tensor trained with the loss 'loss'")));
}

TEST(TrainingInfo, TheLossMayBeTheAlgorithms) {
  TemporaryFolder folder;
  TrainingModel m("penalty");
  auto& half = add_node(*m.info->mutable_algorithm(), "", "Mul", {"loss", "rate"}, {"penalty"});
  half.set_name("half");
  m.info->mutable_algorithm()->mutable_node()->SwapElements(0, 1);  // before its Gradient
  m.step("", "Sub", {"w", "dw"});
  const double whole = loss_of(import_model(small_regression().save(folder.file("plain.onnx")), samples(2)));
  EXPECT_EQ(loss_of(import_model(m.model.save(folder.file("m.onnx")), samples(2))), 0.25 * whole);
}

TEST(TrainingInfo, AdamsSettingsAreTakenOver) {
  TrainingModel m;
  auto& adam = m.step(kTrainingDomain, "Adam", {"rate", "steps", "w", "dw", "v", "h"});
  set_number(adam, "alpha", 0.8f);
  set_number(adam, "epsilon", 1e-3f);
  set_number(adam, "norm_coefficient", 0.5f);
  const StatedOptimizer o = optimizer_of(m);
  EXPECT_EQ(describe(o), "adam, lr 0.25, beta1 0.8, beta2 0.999, eps 0.001, weight decay 0.5, eps without correction");
}

TEST(TrainingInfo, MomentumAndHandWrittenDescentAreSgd) {
  TrainingModel momentum;
  auto& node = momentum.step(kTrainingDomain, "Momentum", {"rate", "steps", "w", "dw", "v"});
  set_number(node, "alpha", 0.9f);
  set_number(node, "beta", 1);
  attribute(node, "mode", onnx::AttributeProto::STRING).set_s("standard");
  EXPECT_EQ(describe(optimizer_of(momentum)), "sgd, lr 0.25, momentum 0.9, weight decay 0");
  TrainingModel descent;
  add_node(*descent.info->mutable_algorithm(), "", "Mul", {"rate", "dw"}, {"scaled"});
  descent.step("", "Sub", {"w", "scaled"});
  EXPECT_EQ(describe(optimizer_of(descent)), "sgd, lr 0.25, weight decay 0");
}

TEST(TrainingInfo, WhatHasNoEquivalentIsNamed) {
  TrainingModel adagrad;
  adagrad.step(kTrainingDomain, "Adagrad", {"rate", "steps", "w", "dw", "h"});
  EXPECT_EQ(optimizer_of(adagrad).kind, "");
  EXPECT_THAT(optimizer_of(adagrad).problem, testing::AllOf(HasSubstr("Adagrad"), HasSubstr("--optimizer")));
  TrainingModel nesterov;
  attribute(nesterov.step(kTrainingDomain, "Momentum", {"rate", "steps", "w", "dw", "v"}), "mode", onnx::AttributeProto::STRING)
      .set_s("nesterov");
  EXPECT_THAT(optimizer_of(nesterov).problem, HasSubstr("nesterov"));
  TrainingModel own;
  own.step("", "Add", {"w", "dw"});
  EXPECT_THAT(optimizer_of(own).problem, HasSubstr("updates 'w' by a rule of its own"));
}

TEST(TrainingInfo, TrainedTensorsAreInitializersOfTheMainGraph) {
  TemporaryFolder folder;
  TrainingModel m;
  m.info->mutable_algorithm()->mutable_node(0)->mutable_attribute(0)->set_strings(0, "rate");
  EXPECT_THAT(message([&] { ModelFile(m.model.save(folder.file("m.onnx"))); }),
              HasSubstr("'rate', which is an initializer of the algorithm"));
}

TEST(TrainingInfo, TheExportKeepsIt) {
  TemporaryFolder folder;
  TrainingModel m;
  m.step("", "Sub", {"w", "dw"});
  const ImportedModel model = import_model(m.model.save(folder.file("m.onnx")), samples(2));
  export_model(model.model_path, folder.file("trained.onnx"), model.graph.parameters, [](const TakeParameter& take) {
    const std::vector<float> values(6, 2.0f);
    take(0, std::as_bytes(std::span(values)));
  });
  const MappedFile file(folder.file("trained.onnx"));
  onnx::ModelProto trained;
  ASSERT_TRUE(trained.ParseFromArray(file.data(), static_cast<int>(file.size())));
  EXPECT_EQ(trained.training_info(0).SerializeAsString(), m.info->SerializeAsString());
  EXPECT_NE(trained.graph().initializer(0).raw_data(), m.model.proto.graph().initializer(0).raw_data());
}

// As ORTModule writes it: the forward ends in a YieldOp, whose results are the gradients of what it was given.
TEST(OwnBackward, IsCutAtTheYieldOp) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression();
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  const double expected = loss_of(import_model(m.save(folder.file("plain.onnx")), samples(2)));
  *graph.add_value_info() = graph.output(0);
  graph.clear_output();
  m.proto.add_opset_import()->set_domain("com.microsoft");
  m.proto.mutable_opset_import(1)->set_version(1);
  add_node(graph, "com.microsoft", "YieldOp", {"loss"}, {"loss_grad"});
  m.node("Mul", {"loss_grad", "y"}, {"dy"});
  m.add("ReduceSum", {"dy"}, "b_grad", {{"keepdims", 0}});
  m.node("Unknown", {"dy"}, {"w_grad"}).set_domain("org.pytorch.aten");
  m.output("b_grad", {}).output("w_grad", {"3", "2"});
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), samples(2));
  EXPECT_EQ(loss_of(model), expected);
  EXPECT_EQ(model.graph.parameters.size(), 2u);
  EXPECT_THAT(model.report, Contains(HasSubstr("holds its own backward behind a YieldOp: 4 nodes and 2 outputs")));
}

TEST(OwnBackward, APayloadFollowsItsNode) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression();
  m.proto.add_opset_import()->set_domain("com.microsoft");
  m.proto.mutable_opset_import(1)->set_version(1);
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  const std::vector<float> large(3 * 200, 0.5f);  // its bytes stay in the file
  m.weight("unread", {3, 200}, std::vector<float>(600, 1.0f));
  m.constant("table", {3, 200}, large);
  m.add("MatMul", {"x", "table"}, "wide");
  m.add("ReduceMean", {"wide"}, "extra", {{"keepdims", 0}});
  add_node(graph, "com.microsoft", "ReluGrad", {"y", "y"}, {"dead"});
  for (int i = graph.node_size() - 1; i > 0; --i) graph.mutable_node()->SwapElements(i, i - 1);  // first, so that all others move
  m.node("Add", {"loss", "extra"}, {"total"});
  graph.clear_output();
  m.output("total", {}).output("dead", {"N", "2"});
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), samples(2));
  const double plain = loss_of(import_model(small_regression().save(folder.file("plain.onnx")), samples(2)));
  EXPECT_NEAR(loss_of(model), plain + 0.5 * (3 + 3) / 2, 1e-5);
}

}  // namespace
}  // namespace zeroplan
