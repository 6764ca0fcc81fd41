// Dropout and operators that draw random numbers: what they are decoded to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<Node> nodes_of(const ImportedModel& model, OpKind op) {
  std::vector<Node> found;
  for (const Node& node : model.graph.nodes)
    if (node.op == op) found.push_back(node);
  return found;
}

ImportedModel import(ModelBuilder& m, const ImportOptions& options = samples(2)) {
  TemporaryFolder folder;
  return import_model(m.save(folder.file("m.onnx")), options);
}

void boolean(ModelBuilder& m, const std::string& name, bool value) {
  onnx::TensorProto& tensor = *m.proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::BOOL);
  tensor.set_raw_data(value ? std::string("\1", 1) : std::string("\0", 1));
}

// x·w → Dropout a → Dropout b → mean
ModelBuilder dropped(float ratio, bool training) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.constant("ratio", ratio);
  boolean(m, "training", training);
  m.node("Mul", {"x", "w"}, {"h"});
  m.node("Dropout", {"h", "ratio", "training"}, {"a"});
  m.node("Dropout", {"a", "ratio", "training"}, {"b", "mask"});
  m.add("ReduceMean", {"b"}, "loss", {{"keepdims", 0}});
  return m;
}

TEST(Dropout, OnlyWhereItTrains) {
  ModelBuilder trained = dropped(0.5f, true), evaluated = dropped(0.5f, false), none = dropped(0, true), all = dropped(1, true);
  const std::vector<Node> nodes = nodes_of(import(trained), OpKind::dropout);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].attributes.get_double(Attr::ratio), 0.5);
  EXPECT_TRUE(nodes_of(import(evaluated), OpKind::dropout).empty());
  EXPECT_TRUE(nodes_of(import(none), OpKind::dropout).empty());
  EXPECT_THAT(message([&] { import(all); }), HasSubstr("ratio 1"));
}

// By the name of the output alone: equal in every run, on every machine, and for every batch.
TEST(Dropout, KeysAreStable) {
  ModelBuilder m = dropped(0.5f, true);
  const std::vector<Node> once = nodes_of(import(m, samples(2)), OpKind::dropout), again = nodes_of(import(m, samples(7)), OpKind::dropout);
  EXPECT_EQ(once[0].attributes.get_int(Attr::key), again[0].attributes.get_int(Attr::key));
  EXPECT_NE(once[0].attributes.get_int(Attr::key), once[1].attributes.get_int(Attr::key));
  EXPECT_EQ(once[0].attributes.get_int(Attr::key), 2018888682195274671);
}

TEST(Dropout, MasksMayBeGiven) {
  ModelBuilder m = dropped(0.5f, true);
  ImportOptions options = samples(1);
  options.dropout_masks["a"] = HostTensor::of<int64_t>(DType::boolean, {1, 3}, {1, 0, 1});
  options.dropout_masks["b"] = HostTensor::of<int64_t>(DType::boolean, {1, 3}, {1, 1, 0});
  const ImportedModel model = import(m, options);
  EXPECT_TRUE(nodes_of(model, OpKind::dropout).empty());
  TemporaryFolder folder;
  m.save(folder.file("m.onnx"));
  EXPECT_DOUBLE_EQ(
      evaluate_loss(import_model(folder.file("m.onnx"), options), {{"x", HostTensor::of<double>(DType::f32, {1, 3}, {6, 1, 1})}}),
      6 * 2 * 2 / 3.0);
  options.dropout_masks["a"] = HostTensor(DType::boolean, {3});
  EXPECT_THAT(message([&] { import(m, options); }), HasSubstr("mask"));
}

TEST(Dropout, NoneLeftIsReported) {
  ModelBuilder m = small_regression(), with = dropped(0.5f, true);
  m.proto.set_producer_name("pytorch");
  with.proto.set_producer_name("pytorch");
  EXPECT_THAT(import(m).report, Contains(HasSubstr("holds no Dropout")));
  EXPECT_THAT(import(with).report, testing::Not(Contains(HasSubstr("holds no Dropout"))));
}

// x + noise → mean of squares; the noise is the output of `op` on `inputs`.
ModelBuilder noisy(const std::string& op, const std::vector<std::string>& inputs, const std::vector<int64_t>& shape = {}) {
  ModelBuilder m = small_regression();
  m.proto.mutable_graph()->mutable_node()->Clear();
  m.node("MatMul", {"x", "w"}, {"xw"});
  onnx::NodeProto& noise = m.node(op, inputs, {"noise"});
  if (!shape.empty()) ModelBuilder::set(noise, "shape", shape);
  m.node("Add", {"xw", "noise"}, {"sum"});
  m.node("Add", {"sum", "b"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  return m;
}

TEST(RandomNumbers, AreDrawnInEachStep) {
  ModelBuilder uniform = noisy("RandomUniform", {}, {2, 2}), normal = noisy("RandomNormalLike", {"xw"}),
               like = noisy("RandomUniformLike", {"xw"});
  EXPECT_EQ(nodes_of(import(uniform), OpKind::random_uniform).size(), 1u);
  EXPECT_EQ(nodes_of(import(like), OpKind::random_uniform).size(), 1u);
  const std::vector<Node> two = nodes_of(import(normal), OpKind::random_uniform);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_NE(two[0].attributes.get_int(Attr::key), two[1].attributes.get_int(Attr::key));
  ImportOptions four = samples(2);
  four.micro_batches = 4;
  EXPECT_EQ(message([&] { import(like, four); }), "");
}

TEST(RandomNumbers, BernoulliAndMultinomialGiveClasses) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3, 4}, std::vector<float>(12, 0.5f));
  m.node("MatMul", {"x", "w"}, {"scores"});
  m.node("Sigmoid", {"scores"}, {"p"});
  m.node("Bernoulli", {"p"}, {"kept"});
  m.add("Multinomial", {"scores"}, "classes", {{"sample_size", 5}, {"dtype", 7}});
  m.add("Cast", {"classes"}, "numbers", {{"to", 1}});
  m.node("Mul", {"scores", "kept"}, {"some"});
  m.add("ReduceMean", {"some"}, "a", {{"keepdims", 0}});
  m.add("ReduceMean", {"numbers"}, "c", {{"keepdims", 0}});
  m.node("Add", {"a", "c"}, {"loss"});
  const ImportedModel model = import(m);
  EXPECT_EQ(nodes_of(model, OpKind::random_uniform).size(), 2u);
  const ValueId classes = model.graph.find("classes");
  ASSERT_NE(classes, kNone);
  EXPECT_EQ(model.graph.value(classes).shape, (Shape{2, 5}));
  EXPECT_EQ(model.graph.value(classes).dtype, DType::i64);
}

}  // namespace
}  // namespace zeroplan
