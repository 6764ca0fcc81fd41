#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text/text.h"
#include "graph_values.h"
#include "passes/passes.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHead = R"(parameter "w" f64[3] trainable initializer="w" file="" offset=0 bytes=24 stored=f64
weight %w:f64[3]{parameter=0}
input %x:f64[2,3]
program micro_step
)";
constexpr const char* kTail = R"(inputs (%x)
loss sum=%loss weight=- description="sum"
)";

Graph graph_of(const std::string& nodes) { return parse_graph(kHead + nodes + kTail); }

// An elementwise chain is made after autodiff and has no gradient of its own.
TEST(Autodiff, NamesEveryNodeWithoutGradientOnThePath) {
  Graph graph = graph_of(R"(  %a:f64[2,3] = elementwise(%x, %w) {code="add 0 1"} origin="first"
  %b:f64[2,3] = elementwise(%a, %a) {code="add 0 1"} origin="second"
  %c:f64[2,3] = elementwise(%x, %x) {code="add 0 1"} origin="no parameter behind"
  %e:f64[2,3] = elementwise(%w, %x) {code="add 0 1"} origin="not in the loss"
  %d:f64[2,3] = add(%b, %c) origin="sum"
  %loss:f64[] = reduce_sum(%d) {axes=[0,1], keepdims=0} origin="loss"
)");
  try {
    autodiff(graph, {});
    FAIL() << "nothing was thrown";
  } catch (const ErrorList& error) {
    EXPECT_THAT(error.problems(), ElementsAre(HasSubstr("'first'"), HasSubstr("'second'")));
    EXPECT_THAT(error.what(), HasSubstr("--freeze"));
  }
}

TEST(Autodiff, NeedsALoss) {
  Graph graph = graph_of("  %loss:f64[] = reduce_sum(%x) {axes=[0,1], keepdims=0} origin=\"loss\"\n");
  graph.loss = {};
  EXPECT_THROW(autodiff(graph, {}), Error);
}

TEST(Autodiff, GivesZerosWhereTheLossDependsOnNoParameter) {
  const Graph graph = graph_of("  %loss:f64[] = reduce_sum(%x) {axes=[0,1], keepdims=0} origin=\"loss\"\n");
  EXPECT_EQ(gradients(graph).at("w"), HostTensor(DType::f64, {3}));
}

TEST(Autodiff, MakesNoGradientOfAFrozenParameter) {
  Graph graph = graph_of("  %y:f64[2,3] = mul(%x, %w)\n  %loss:f64[] = reduce_sum(%y) {axes=[0,1], keepdims=0} origin=\"loss\"\n");
  graph.parameters[0].trainable = false;
  const size_t forward = graph.nodes.size();
  autodiff(graph, {});
  EXPECT_TRUE(graph.gradients.empty());
  EXPECT_EQ(graph.nodes.size(), forward + 1) << "only record_loss";
}

TEST(Autodiff, SizesTheMetricsByMicroBatches) {
  Graph graph = graph_of("  %loss:f64[] = reduce_sum(%x) {axes=[0,1], keepdims=0} origin=\"loss\"\n");
  CompileOptions options;
  options.micro_batches = 5;
  autodiff(graph, options);
  EXPECT_EQ(graph.values[graph.find("metrics")].shape, Shape{12});
  ASSERT_EQ(graph.state_updates.size(), 1u);
  EXPECT_EQ(graph.state_updates[0].from, graph.find("metrics"));
}

}  // namespace
}  // namespace zeroplan
