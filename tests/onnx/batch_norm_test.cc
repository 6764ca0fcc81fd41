// Batch normalizations: their modes, and which tensors their running statistics are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// x[N,2,1] → BN a → BN b → mean of squares; `mean_b`: what b reads as its running mean.
ModelBuilder two_norms(bool training, const std::string& mean_b = "b.running_mean") {
  ModelBuilder m;
  m.proto.set_producer_name("pytorch");
  m.input("x", {"N", "2", "1"}).output("loss", {});
  for (const std::string n : {"a", "b"}) {
    m.weight(n + ".weight", {2}, {1, 2});
    m.weight(n + ".bias", {2}, {0, 0});
    if (n == "a" || mean_b == "b.running_mean") m.weight(n + ".running_mean", {2}, {0, 0.5f});
    m.weight(n + ".running_var", {2}, {1, 4});
  }
  if (mean_b != "b.running_mean") m.node("Identity", {"a.running_mean"}, {mean_b});
  std::string h = "x";
  for (const std::string n : {"a", "b"}) {
    std::vector<std::string> outputs = {n};
    if (training) outputs.insert(outputs.end(), {n + "_mean", n + "_var"});
    onnx::NodeProto& node =
        m.node("BatchNormalization", {h, n + ".weight", n + ".bias", n == "b" ? mean_b : n + ".running_mean", n + ".running_var"}, outputs);
    if (training) ModelBuilder::set(node, "training_mode", int64_t{1});
    h = n;
  }
  m.node("Mul", {"b", "b"}, {"square"});
  m.add("ReduceMean", {"square"}, "loss", {{"keepdims", 0}});
  return m;
}

std::vector<std::string> statistics_of(const ImportedModel& model) {
  std::vector<std::string> names;
  for (const Parameter& p : model.graph.parameters)
    if (p.statistics) names.push_back(p.name);
  return names;
}

ImportedModel import(ModelBuilder& m, const ImportOptions& options = samples(4)) {
  TemporaryFolder folder;
  return import_model(m.save(folder.file("m.onnx")), options);
}

Role role_of(const ImportedModel& model, const std::string& name) {
  for (const RoleRow& row : model.roles)
    if (row.initializer == name) return row.role;
  return Role::constant;
}

TEST(BatchNorms, TrainingModeMakesStatistics) {
  ModelBuilder m = two_norms(true);
  const ImportedModel model = import(m);
  EXPECT_THAT(statistics_of(model), UnorderedElementsAre("a.running_mean", "a.running_var", "b.running_mean", "b.running_var"));
  ASSERT_EQ(model.graph.statistics.size(), 2u);
  EXPECT_EQ(model.graph.statistics[0].momentum, 0.9);
  EXPECT_EQ(model.graph.value(model.graph.statistics[1].running_variance).name, "b.running_var");
  EXPECT_EQ(role_of(model, "a.running_mean"), Role::buffer);
  EXPECT_THAT(model.report, Contains(HasSubstr("2 BatchNormalizations use the statistics of each micro-batch")));
}

TEST(BatchNorms, EvaluationModeKeepsThemConstant) {
  ModelBuilder m = two_norms(false);
  const ImportedModel model = import(m);
  EXPECT_TRUE(statistics_of(model).empty());
  EXPECT_TRUE(model.graph.statistics.empty());
  // a: (x - mean)/sqrt(var)·weight; b the same on that.
  const double x = 3, a0 = x / std::sqrt(1 + 1e-5), a1 = (x - 0.5) * 2 / std::sqrt(4 + 1e-5);
  const double b0 = a0 / std::sqrt(1 + 1e-5), b1 = (a1 - 0.5) * 2 / std::sqrt(4 + 1e-5);
  TemporaryFolder folder;
  EXPECT_NEAR(evaluate_loss(import_model(m.save(folder.file("m.onnx")), samples(1)),
                            {{"x", HostTensor::of<double>(DType::f32, {1, 2, 1}, {x, x})}}),
              (b0 * b0 + b1 * b1) / 2, 1e-6);
}

TEST(BatchNorms, PatternsNameNodesOrTensors) {
  ModelBuilder evaluated = two_norms(false), trained = two_norms(true);
  for (const std::string pattern : {"node_b", "^b\\.", "b.bias"}) {
    ImportOptions options = samples(4);
    options.train_bn = {pattern};
    EXPECT_THAT(statistics_of(import(evaluated, options)), UnorderedElementsAre("b.running_mean", "b.running_var")) << pattern;
    options.train_bn.clear();
    options.eval_bn = {pattern};
    EXPECT_THAT(statistics_of(import(trained, options)), UnorderedElementsAre("a.running_mean", "a.running_var")) << pattern;
  }
}

// Two nodes that read one tensor: called twice in the model, or merged by the exporter where an Identity stands in front.
TEST(BatchNorms, SharedStatisticsAndMergedOnes) {
  ModelBuilder merged = two_norms(true, "b.mean.of.old");
  const ImportedModel model = import(merged);
  EXPECT_THAT(statistics_of(model), UnorderedElementsAre("a.running_mean", "a.running_var", "b.mean.of.old", "b.running_var"));
  ModelBuilder shared = two_norms(true);
  shared.proto.mutable_graph()->mutable_node(1)->set_input(3, "a.running_mean");
  shared.proto.mutable_graph()->mutable_node(1)->set_input(4, "a.running_var");
  const ImportedModel once = import(shared);
  EXPECT_THAT(statistics_of(once), UnorderedElementsAre("a.running_mean", "a.running_var"));
  EXPECT_EQ(once.graph.statistics.size(), 2u);
}

// A trained bias that is equal to a running mean, and merged with it.
TEST(BatchNorms, StatisticsMergedIntoAParameter) {
  ModelBuilder m = two_norms(true);
  m.proto.mutable_graph()->mutable_node(0)->set_input(3, "a.bias");
  TemporaryFolder folder;
  const std::string from = m.save(folder.file("m.onnx")), to = folder.file("trained.onnx");
  const ImportedModel model = import_model(from, samples(4));
  EXPECT_THAT(statistics_of(model), UnorderedElementsAre("a.bias.running_mean", "a.running_var", "b.running_mean", "b.running_var"));
  EXPECT_EQ(role_of(model, "a.bias"), Role::parameter);
  export_model(from, to, model.graph.parameters, [&](const TakeParameter& take) {
    for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
      const std::vector<float> values(2, static_cast<float>(i + 1));
      take(static_cast<int>(i), std::as_bytes(std::span(values)));
    }
  });
  // The export is in inference mode.
  EXPECT_TRUE(statistics_of(import_model(to, samples(4))).empty());
  ImportOptions training = samples(4);
  training.train_bn = {"."};
  const ImportedModel after = import_model(to, training);
  EXPECT_EQ(after.graph.parameters.size(), model.graph.parameters.size());
  EXPECT_EQ(statistics_of(after).size(), 4u);
}

// Exporters that know no initializers, as PaddlePaddle's, store running statistics in Constant nodes.
TEST(BatchNorms, StatisticsInConstantNodesAreState) {
  TemporaryFolder folder;
  ModelBuilder m = two_norms(true);
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  for (int i = graph.initializer_size() - 1; i >= 0; --i) {
    const onnx::TensorProto tensor = graph.initializer(i);
    if (tensor.name().find("running") == std::string::npos) continue;
    graph.mutable_initializer()->DeleteSubrange(i, 1);
    std::vector<float> values(2);
    std::memcpy(values.data(), tensor.raw_data().data(), 8);
    m.constant(tensor.name(), {2}, values);
    for (int at = graph.node_size() - 1; at > 0; --at) graph.mutable_node()->SwapElements(at, at - 1);
  }
  const std::string from = m.save(folder.file("m.onnx")), to = folder.file("trained.onnx");
  const ImportedModel model = import_model(from, samples(4));
  EXPECT_THAT(statistics_of(model), UnorderedElementsAre("a.running_mean", "a.running_var", "b.running_mean", "b.running_var"));
  EXPECT_EQ(model.graph.statistics.size(), 2u);
  export_model(from, to, model.graph.parameters, [&](const TakeParameter& take) {
    for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
      const std::vector<float> values(2, model.graph.parameters[i].name == "b.running_var" ? 9.0f : 1.0f);
      take(static_cast<int>(i), std::as_bytes(std::span(values)));
    }
  });
  ImportOptions training = samples(4);
  training.train_bn = {"."};
  const ImportedModel after = import_model(to, training);
  std::map<ValueId, HostTensor> values;
  load_parameters(after, values);
  EXPECT_EQ(values.at(after.graph.find("b.running_var")).get(1), 9);
  EXPECT_EQ(values.at(after.graph.find("a.running_var")).get(1), 1);
}

// The second norm of two_norms inside an If, in training mode in its first branch.
ModelBuilder norm_in_branch(bool constant_condition) {
  ModelBuilder m = two_norms(true);
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  onnx::NodeProto norm = graph.node(1);
  graph.mutable_node()->DeleteSubrange(1, 1);
  norm.set_output(0, "inside");
  onnx::NodeProto choice;
  choice.set_op_type("If");
  choice.set_name("choice");
  choice.add_input("condition");
  choice.add_output("b");
  const auto branch = [&](const char* name, const onnx::NodeProto& node) {
    onnx::AttributeProto& attribute = *choice.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.mutable_g()->set_name(name);
    *attribute.mutable_g()->add_node() = node;
    attribute.mutable_g()->add_output()->set_name(node.output(0));
    attribute.mutable_g()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  };
  branch("then_branch", norm);
  onnx::NodeProto same;
  same.set_op_type("Identity");
  same.add_input("a");
  same.add_output("as_it_was");
  branch("else_branch", same);
  if (constant_condition) {
    onnx::TensorProto& condition = *graph.add_initializer();
    condition.set_name("condition");
    condition.set_data_type(onnx::TensorProto::BOOL);
    condition.set_raw_data(std::string(1, '\1'));
  } else {
    m.input("condition", {}, onnx::TensorProto::BOOL);
  }
  *graph.add_node() = choice;
  for (int at = graph.node_size() - 1; at > 1; --at) graph.mutable_node()->SwapElements(at, at - 1);
  return m;
}

TEST(BatchNorms, InABranchThatIsKnownTheyAreState) {
  ModelBuilder m = norm_in_branch(true);
  const ImportedModel model = import(m);
  EXPECT_THAT(statistics_of(model), UnorderedElementsAre("a.running_mean", "a.running_var", "b.running_mean", "b.running_var"));
  EXPECT_EQ(model.graph.statistics.size(), 2u);
}

// What is wrong with a choice says nothing of the norms that come after it.
TEST(BatchNorms, AfterAChoiceThatCannotBeReadTheyAreOutsideOfIt) {
  ModelBuilder m = norm_in_branch(false);
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  onnx::NodeProto& choice =
      *std::find_if(graph.mutable_node()->begin(), graph.mutable_node()->end(), [](const auto& node) { return node.name() == "choice"; });
  onnx::GraphProto& branch = *choice.mutable_attribute(0)->mutable_g();
  onnx::NodeProto norm = branch.node(0), identity = choice.attribute(1).g().node(0);
  identity.set_output(0, "inside");
  *branch.mutable_node(0) = identity;
  onnx::ValueInfoProto& surplus = *choice.mutable_attribute(1)->mutable_g()->add_input();  // branches take none
  surplus.set_name("surplus");
  surplus.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  norm.set_input(0, "x");
  norm.set_output(0, "outside");
  graph.mutable_node()->RemoveLast();  // the loss
  *graph.add_node() = norm;
  m.node("Add", {"square", "outside"}, {"both"});
  m.add("ReduceMean", {"both"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(message([&] { import(m); }),
              testing::AllOf(HasSubstr("its body takes 1 inputs"), testing::Not(HasSubstr("inside a branch"))));
}

TEST(BatchNorms, InABranchThatDataChoosesTheyAreRefused) {
  ModelBuilder m = norm_in_branch(false);
  EXPECT_THAT(message([&] { import(m); }), testing::AllOf(HasSubstr("node 'node_b' (BatchNormalization"),
                                                          HasSubstr("inside a branch that data chooses"), HasSubstr("--eval-bn 'node_b'")));
  ImportOptions evaluated = samples(4);
  evaluated.eval_bn = {"node_b"};
  EXPECT_THAT(statistics_of(import(m, evaluated)), UnorderedElementsAre("a.running_mean", "a.running_var"));
}

TEST(BatchNorms, FreezingRunningStatisticsIsRefused) {
  ModelBuilder m = two_norms(true);
  ImportOptions options = samples(4);
  options.freeze = {"b\\.running_mean"};
  EXPECT_THAT(message([&] { import(m, options); }), testing::AllOf(HasSubstr("--freeze matches 'b.running_mean', the running statistics"),
                                                                   HasSubstr("--eval-bn 'b.running_mean'")));
  options.freeze = {"b.running_mean", "weight"};
  options.eval_bn = {"^b\\."};
  EXPECT_THAT(statistics_of(import(m, options)), UnorderedElementsAre("a.running_mean", "a.running_var"));
}

TEST(BatchNorms, SamplesStayApartBehindThem) {
  ModelBuilder m = two_norms(true);
  ImportOptions options = samples(4);
  options.micro_batches = 2;
  EXPECT_THAT(import(m, options).report, Contains(HasSubstr("--sync-bn takes them over all ranks")));
  options.sync_bn = true;
  EXPECT_THAT(import(m, options).report, Contains(HasSubstr("all ranks' samples of a round")));
}

}  // namespace
}  // namespace zeroplan
