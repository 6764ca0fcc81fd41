// What is a weight in files that do not say it, and what a number of a formula.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "graph/onnx/importer.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> trained(const ModelBuilder& model, const ImportOptions& more = {}) {
  TemporaryFolder folder;
  ImportOptions options = more;
  options.samples = 2;
  std::vector<std::string> names;
  for (const Parameter& p : import_model(model.save(folder.file("m.onnx")), options).graph.parameters) names.push_back(p.name);
  return names;
}

// Constant nodes stand in front of what reads them.
ModelBuilder with_first(const ModelBuilder& constants, const ModelBuilder& rest) {
  ModelBuilder m = rest;
  onnx::GraphProto& graph = *m.proto.mutable_graph();
  graph.clear_node();
  graph.mutable_node()->MergeFrom(constants.proto.graph().node());
  graph.mutable_node()->MergeFrom(rest.proto.graph().node());
  return m;
}

TEST(Literals, WhereWeightsAreConstantNodesSmallOnesAreWeightsToo) {
  ModelBuilder constants, m;
  constants.constant("kernel", {1, 3, 1}, {1, 2, 3}).constant("bias", {1}, {0.5f}).constant("scale", {4}, {1, 2, 3, 4});
  constants.constant("factor", {}, {2}).constant("Constant@4", {1}, {6}).constant("/m/Constant_2_output_0", {4}, {1, 2, 3, 4});
  m.input("x", {"N", "3", "4"}).output("loss", {});
  m.node("Conv", {"x", "kernel", "bias"}, {"y"});
  m.node("Mul", {"y", "scale"}, {"a"});
  m.node("Mul", {"a", "factor"}, {"b"});
  m.node("Mul", {"b", "Constant@4"}, {"c"});
  m.node("Mul", {"c", "/m/Constant_2_output_0"}, {"d"});
  m.add("ReduceMean", {"d"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(trained(with_first(constants, m)), UnorderedElementsAre("kernel", "bias", "scale", "factor"));
}

TEST(Literals, BesideInitializersAConstantIsAWeightWhereItsReaderHasOne) {
  ModelBuilder constants, m;
  constants.constant("bias", {1}, {0.5f}).constant("offset", {4}, {1, 2, 3, 4});
  m.input("x", {"N", "3", "4"}).output("loss", {});
  m.weight("kernel", {1, 3, 1}, {1, 2, 3});
  m.node("Conv", {"x", "kernel", "bias"}, {"y"});
  m.node("Add", {"y", "offset"}, {"z"});
  m.add("ReduceMean", {"z"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(trained(with_first(constants, m)), UnorderedElementsAre("kernel", "bias"));
}

// y = x · w; then one value in the place that `add_nodes` gives it.
template <typename Fn>
ModelBuilder with_value(Fn&& add_nodes) {
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.weight("value", {1}, {0.25f});
  m.node("Mul", {"x", "w"}, {"y"});
  add_nodes(m);
  m.add("ReduceMean", {"z"}, "loss", {{"keepdims", 0}});
  return m;
}

TEST(Literals, OneValueThatServesAFormulaIsNotTrained) {
  const auto epsilon = with_value([](ModelBuilder& m) {
    m.node("Mul", {"y", "y"}, {"square"});
    m.node("Add", {"square", "value"}, {"sum"});
    m.node("Sqrt", {"sum"}, {"z"});
  });
  const auto divisor = with_value([](ModelBuilder& m) {
    m.node("Add", {"y", "value"}, {"sum"});
    m.node("Div", {"y", "sum"}, {"z"});
  });
  const auto bound = with_value([](ModelBuilder& m) { m.node("Max", {"y", "value"}, {"z"}); });
  const auto shared = with_value([](ModelBuilder& m) {
    m.node("Mul", {"y", "value"}, {"a"});
    m.node("Mul", {"a", "value"}, {"z"});
  });
  for (const ModelBuilder& m : {epsilon, divisor, bound, shared}) {
    EXPECT_THAT(trained(m), ElementsAre("w"));
    ImportOptions options;
    options.train = {"^value$"};
    EXPECT_THAT(trained(m, options), UnorderedElementsAre("w", "value"));
  }
}

TEST(Literals, OneValueThatMayBeAWeightIsTrained) {
  const auto factor = with_value([](ModelBuilder& m) { m.node("Mul", {"y", "value"}, {"z"}); });
  const auto offset = with_value([](ModelBuilder& m) {
    m.node("Add", {"y", "value"}, {"sum"});
    m.node("Exp", {"sum"}, {"z"});
  });
  const auto slope = with_value([](ModelBuilder& m) {
    m.node("PRelu", {"y", "value"}, {"a"});
    m.node("PRelu", {"a", "value"}, {"z"});
  });
  for (const ModelBuilder& m : {factor, offset, slope}) EXPECT_THAT(trained(m), UnorderedElementsAre("w", "value"));
  ModelBuilder tensorflow = factor;
  tensorflow.proto.set_producer_name("tf2onnx");
  EXPECT_THAT(trained(tensorflow), ElementsAre("w"));
}

// A folded transpose gets the name that its module gives it.
TEST(Names, AChildOfASequentialHasItsNameOnce) {
  ModelBuilder m;
  m.input("x", {"N", "2"}).output("loss", {});
  m.proto.set_producer_name("pytorch");
  m.weight("onnx::MatMul_1", {2, 2}, {1, 2, 3, 4});
  m.weight("onnx::MatMul_2", {2, 2}, {5, 6, 7, 8});
  m.weight("net.ffm.1.bias", {2}, {1, 2});
  m.node("MatMul", {"x", "onnx::MatMul_1"}, {"a"}, "/net/ffm/ffm.1/MatMul");
  m.node("Add", {"a", "net.ffm.1.bias"}, {"b"}, "/net/ffm/ffm.1/Add");
  m.node("MatMul", {"b", "onnx::MatMul_2"}, {"c"}, "/net/ffm/ffm.2/MatMul");
  m.add("ReduceMean", {"c"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(trained(m), UnorderedElementsAre("net.ffm.1.weight", "net.ffm.1.bias", "net.ffm.ffm.2.weight"));
}

}  // namespace
}  // namespace zeroplan
