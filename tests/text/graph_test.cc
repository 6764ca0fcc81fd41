#include "graph/ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/ops/builder.h"
#include "graph/ops/verify_graph.h"
#include "graph/text/text.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Value named(std::string name) {
  Value value;
  value.name = std::move(name);
  return value;
}

Graph with_input(Shape shape) {
  Graph graph;
  Value value = named("x");
  value.kind = ValueKind::input;
  value.shape = std::move(shape);
  graph.inputs = {graph.add_value(std::move(value))};
  return graph;
}

TEST(Attributes, StaySortedAndTyped) {
  Attributes attributes{{Attr::keepdims, int64_t{1}}, {Attr::axis, int64_t{2}}};
  attributes.set(Attr::axis, int64_t{3});
  attributes.set(Attr::epsilon, 0.5);
  EXPECT_EQ(attributes.entries().size(), 3u);
  EXPECT_EQ(attributes.get_int(Attr::axis), 3);
  EXPECT_EQ(attributes.get_int(Attr::causal, 7), 7);
  EXPECT_THAT([&] { attributes.get_int(Attr::causal); }, ThrowsMessage<std::logic_error>(HasSubstr("causal is missing")));
  EXPECT_THAT([&] { attributes.get_int(Attr::epsilon); }, ThrowsMessage<std::logic_error>(HasSubstr("epsilon is not an integer")));
  EXPECT_EQ(attributes, (Attributes{{Attr::axis, int64_t{3}}, {Attr::epsilon, 0.5}, {Attr::keepdims, int64_t{1}}}));
  EXPECT_EQ(parse_attr("ignore_index"), Attr::ignore_index);
  EXPECT_THROW(parse_attr("axel"), Error);
}

TEST(Graph, NamesAreUnique) {
  Graph graph;
  const ValueId first = graph.add_value(named("a"));
  EXPECT_EQ(graph.value(graph.add_value(named("a"))).name, "a.1");
  EXPECT_EQ(graph.value(graph.add_value(named("a.1"))).name, "a.1.1");
  EXPECT_EQ(graph.value(graph.add_value(named("a"))).name, "a.2");
  graph.rename(first, "b");
  EXPECT_EQ(graph.find("b"), first);
  EXPECT_EQ(graph.find("a"), kNone);
  EXPECT_EQ(graph.value(graph.add_value(named("a"))).name, "a");
  EXPECT_EQ(graph.value(graph.add_value(named("b"))).name, "b.1");
}

TEST(Graph, NamesSurviveErasedAndPushedValues) {
  Graph graph;
  for (const char* name : {"a", "b", "c"}) graph.add_value(named(name));
  graph.values.erase(graph.values.begin());
  EXPECT_EQ(graph.value(graph.add_value(named("a"))).name, "a");
  graph.values.push_back(named("pushed"));
  EXPECT_EQ(graph.find("pushed"), 3);
  EXPECT_EQ(graph.value(graph.add_value(named("pushed"))).name, "pushed.1");
  EXPECT_EQ(graph.value(graph.add_value(named("c"))).name, "c.1");
}

// What builds a node may still hold the shape of its operands.
TEST(Graph, ReferencesToValuesHoldWhileOthersAreAdded) {
  Graph graph = with_input({2, 3});
  const Shape& shape = graph.value(graph.inputs[0]).shape;
  for (int i = 0; i < 1000; ++i) graph.add_value(named("y"));
  EXPECT_EQ(&shape, &graph.value(graph.inputs[0]).shape);
  EXPECT_EQ(shape, (Shape{2, 3}));
}

TEST(Graph, UsersAreListedOnceAndInOrder) {
  Graph graph = with_input({2});
  Builder build(graph);
  const ValueId square = build.add(OpKind::mul, {0, 0});
  build.add(OpKind::add, {0, square});
  EXPECT_THAT(graph.users(), ElementsAre(ElementsAre(0, 1), ElementsAre(1), ElementsAre()));
  std::swap(graph.nodes[0], graph.nodes[1]);
  graph.reindex();
  EXPECT_EQ(graph.value(square).producer, 1);
}

TEST(Builder, NamesAndMarksWhatItAdds) {
  Graph graph = with_input({2, 3});
  Builder build(graph);
  build.origin = "/h/Neg";
  build.backward = true;
  build.program = Program::update;
  const ValueId y = build.add(OpKind::neg, {0});
  EXPECT_EQ(graph.value(y).name, "neg_1");
  EXPECT_EQ(graph.value(y).shape, (Shape{2, 3}));
  EXPECT_EQ(graph.value(build.add(OpKind::neg, {0}, {}, "mine")).name, "mine");
  EXPECT_EQ(graph.nodes[0].origin, "/h/Neg");
  EXPECT_TRUE(graph.nodes[0].backward);
  EXPECT_EQ(graph.nodes[0].program, Program::update);
  EXPECT_EQ(graph.value(build.scalar(0.5, DType::f64)).constant.get(0), 0.5);
}

TEST(Builder, ErrorsNameTheOrigin) {
  Graph graph = with_input({2, 3});
  Builder build(graph);
  build.origin = "/h/Reshape_7";
  EXPECT_THAT([&] { build.reshape(0, {5}); }, ThrowsMessage<Error>(HasSubstr("/h/Reshape_7")));
  EXPECT_TRUE(graph.nodes.empty());
}

TEST(Builder, ShorthandsReturnTheOperandWhereNothingChanges) {
  Graph graph = with_input({2, 3});
  Builder build(graph);
  EXPECT_EQ(build.reshape(0, {2, 3}), 0);
  EXPECT_EQ(build.transpose(0, {0, 1}), 0);
  EXPECT_EQ(build.sum_to(0, {2, 3}), 0);
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(build.shape(build.transpose_last_two(0)), (Shape{3, 2}));
}

TEST(Builder, SumsDownToABroadcastOperand) {
  const std::vector<std::tuple<Shape, Shape, size_t>> cases = {{{4, 2, 3}, {2, 3}, 1}, {{4, 2, 3}, {4, 1, 3}, 1}, {{4, 2, 3}, {1, 3}, 2},
                                                               {{4, 2, 3}, {}, 1},     {{1, 3}, {3}, 1},          {{4, 3}, {1, 1}, 1}};
  for (const auto& [from, to, nodes] : cases) {
    Graph graph = with_input(from);
    Builder build(graph);
    EXPECT_EQ(build.shape(build.sum_to(0, to)), to);
    EXPECT_EQ(graph.nodes.size(), nodes) << to_string(to);
    EXPECT_NO_THROW(verify_graph(graph));
  }
  Graph graph = with_input({2, 3});
  EXPECT_THROW(Builder(graph).sum_to(0, {4, 2, 3}), std::logic_error);
}

constexpr const char* kValid =
    R"(
parameter "p" f32[3] trainable initializer="p" file="" offset=0 bytes=12 stored=f32
weight %w:f32[3]{parameter=0}
input %x:f32[2,3]
constant %c:f32[] = 2
state %s:f32[]
program micro_step
  %a:f32[2,3] = mul(%x, %w)
  %b:f32[2,3] = mul(%a, %c) origin="/h/Mul"
program update
  %n:f32[] = neg(%s)
inputs (%x)
output "y" = %b
)"
    "unit \"u\" f32 gradient_dtype=f32 reduce_dtype=f32 padded_elements=64 shard_elements=64 trainable weights=sharded gradients=sharded "
    "optimizer=sharded "
    "weights_state=%s gradient_shard=- gradient_full=- moments=()\n";

void expect_invalid(void (*break_it)(Graph&), const std::string& message) {
  Graph graph = parse_graph(kValid);
  ASSERT_NO_THROW(verify_graph(graph));
  break_it(graph);
  EXPECT_THAT([&] { verify_graph(graph); }, ThrowsMessage<std::logic_error>(HasSubstr(message)));
}

TEST(VerifyGraph, NamesTheNode) {
  expect_invalid(
      [](Graph& g) {
        g.values[g.find("b")].shape = {3, 2};
      },
      "%b of '/h/Mul' in micro_step: output 0 is f32[3,2], its op infers f32[2,3]");
  expect_invalid([](Graph& g) { g.values[g.find("b")].dtype = DType::f64; }, "output 0 is f64[2,3]");
}

TEST(VerifyGraph, FindsNodesOutOfOrder) {
  expect_invalid(
      [](Graph& g) {
        std::swap(g.nodes[0], g.nodes[1]);
        g.reindex();
      },
      "reads %a before it is defined");
  expect_invalid(
      [](Graph& g) {
        std::swap(g.nodes[1], g.nodes[2]);
        g.reindex();
      },
      "later program");
  expect_invalid([](Graph& g) { g.nodes[2].inputs[0] = g.find("a"); }, "reads %a before it is defined in this program");
  expect_invalid([](Graph& g) { g.nodes[1].outputs = g.nodes[0].outputs; }, "%a is produced by node 0 too");
  expect_invalid([](Graph& g) { g.values[g.find("a")].producer = 1; }, "%a has producer 1");
  expect_invalid(
      [](Graph& g) {
        g.nodes[1].outputs = {g.find("x")};
        g.reindex();
      },
      "output %x is a leaf");
}

TEST(VerifyGraph, FindsIdsOutOfRange) {
  expect_invalid([](Graph& g) { g.nodes[1].inputs[0] = 99; }, "input id 99");
  expect_invalid([](Graph& g) { g.nodes[1].outputs[0] = -2; }, "output id -2");
  expect_invalid([](Graph& g) { g.nodes[1].unit = 1; }, "unit of a node");
  expect_invalid([](Graph& g) { g.values[0].parameter = 1; }, "parameter of %w");
  expect_invalid([](Graph& g) { g.values[g.find("a")].copy_of = 99; }, "original of %a");
  expect_invalid([](Graph& g) { g.outputs["z"] = kNone; }, "output 'z'");
  expect_invalid([](Graph& g) { g.loss.sum = 99; }, "loss");
  expect_invalid([](Graph& g) { g.gradients[3] = 0; }, "gradients");
  expect_invalid([](Graph& g) { g.state_updates.push_back({Program::update, 0, kNone}); }, "state updates");
  expect_invalid([](Graph& g) { g.statistics.push_back({0, kNone, 0, 0}); }, "batch statistics");
  expect_invalid([](Graph& g) { g.statistics.push_back({0, 0, 0, 0}); }, "holds no running statistics");
  expect_invalid([](Graph& g) { g.units[0].parameters = {{5, 0, 1}}; }, "unit 'u'");
  expect_invalid([](Graph& g) { g.units[0].moments = {kNone}; }, "unit 'u'");
  expect_invalid([](Graph& g) { g.source.push_back({OpKind::neg, {99}, {0}}); }, "source");
}

TEST(VerifyGraph, FindsLeavesThatContradictThemselves) {
  expect_invalid([](Graph& g) { g.values[g.find("a")].name = "b"; }, "two values are called %b");
  expect_invalid([](Graph& g) { g.values[g.find("n")].copy_of = g.find("x"); }, "%n is f32[], the value that it is a copy of f32[2,3]");
  expect_invalid([](Graph& g) { g.values[g.find("c")].constant = HostTensor(DType::f32, {1}); }, "constant %c");
  expect_invalid([](Graph& g) { g.parameters[0].shape = {4}; }, "parameter 'p' f32[4]");
  expect_invalid([](Graph& g) { g.inputs = {0}; }, "%w is not an input");
}

}  // namespace
}  // namespace zeroplan
