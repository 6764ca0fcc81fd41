#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/text/text.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

ValueId add_value(Graph& graph, std::string name, ValueKind kind, DType dtype, Shape shape, int32_t parameter = kNone,
                  int32_t unit = kNone) {
  Value value;
  value.name = std::move(name);
  value.kind = kind;
  value.dtype = dtype;
  value.shape = std::move(shape);
  value.parameter = parameter;
  value.unit = unit;
  return graph.add_value(std::move(value));
}

ValueId add_constant(Graph& graph, std::string name, HostTensor tensor) {
  const ValueId id = add_value(graph, std::move(name), ValueKind::constant, tensor.dtype(), tensor.shape());
  graph.values[id].constant = std::move(tensor);
  return id;
}

constexpr const char* kOddName = "/h/0/Mat \"Mul\":0, {a}\\ \n\t\r\x01 é#%";

void add_parameters(Graph& graph) {
  Parameter plain;
  plain.name = "wte.weight";
  plain.shape = {4, 3};
  plain.source = {{"onnx::MatMul_17", "model.onnx.data", 4096, 96, StoredType::f64}, {}};
  plain.aliases = {{"lm_head", true}, {kOddName, false}};
  plain.split_uses = {{"/h/Add", 1}, {kOddName, 2}};
  plain.role_reason = "a weight of\n2 dimensions";
  Parameter frozen;
  frozen.name = kOddName;
  frozen.dtype = DType::f64;
  frozen.trainable = false;
  frozen.source = {{kOddName, "", 1, 2, StoredType::u8, true},
                   Quantization{{"scale", "", 3, 4, StoredType::bf16}, {"zero", "z.bin", 5, 6, StoredType::i16, true}, 10, 7, 8, 9}};
  graph.parameters = {plain, frozen};
}

void add_units(Graph& graph) {
  Unit unit;
  unit.name = "h.1";
  unit.parameters = {{0, 0, 12}, {1, 64, 1}};
  unit.padded_elements = 128;
  unit.shard_elements = 64;
  unit.trainable = false;
  unit.gradients = Placement::replicated;
  unit.dtype = DType::f64;
  unit.gradient_dtype = DType::i64;
  unit.reduce_dtype = DType::bf16;
  unit.weights_state = add_value(graph, "weights", ValueKind::state, DType::f64, {64}, kNone, 0);
  unit.carried = true;
  unit.gradient_shard = add_value(graph, "shard", ValueKind::state, DType::f64, {64}, kNone, 0);
  unit.gradient_full = add_value(graph, "full", ValueKind::state, DType::f64, {128}, kNone, 0);
  unit.moments = {add_value(graph, "m", ValueKind::state, DType::f64, {64}), add_value(graph, "v", ValueKind::state, DType::f64, {64})};
  graph.units = {unit, Unit{{.name = "empty"}}};
}

// Every field of a Graph differs from its default somewhere. Not a graph that verify_graph accepts.
Graph full_graph() {
  Graph graph;
  add_parameters(graph);
  const ValueId weight = add_value(graph, "w", ValueKind::parameter, DType::f32, {4, 3}, 0);
  const ValueId first = add_value(graph, "ids", ValueKind::input, DType::i64, {2, 2});
  const ValueId second = add_value(graph, kOddName, ValueKind::input, DType::boolean, {});
  const ValueId dead = add_value(graph, "dead/value", ValueKind::computed, DType::u8, {0, 2});
  const ValueId constant = add_constant(graph, "c", HostTensor::of(DType::f32, {3}, std::vector<float>{0.1f, -0.0f, 1e-45f}));
  add_units(graph);
  const ValueId y = add_value(graph, "y", ValueKind::computed, DType::f32, {2, 3}, 0, 1);
  const ValueId z = add_value(graph, "", ValueKind::computed, DType::f64, {});
  graph.values[y].copy_of = weight;

  Node load{OpKind::load_unit, {}, {graph.units[0].weights_state}, {}, Program::load, 0};
  Node compute{OpKind::layer_norm, {weight, kNone, first, constant}, {y, z}};
  compute.attributes = {{Attr::axis, int64_t{-1}},
                        {Attr::epsilon, 1e-5},
                        {Attr::value, 2.0},
                        {Attr::scale, -INFINITY},
                        {Attr::optimizer, std::string(kOddName)},
                        {Attr::axes, std::vector<int64_t>{0, -2}},
                        {Attr::shape, Shape{}}};
  compute.unit = 1;
  compute.backward = true;
  compute.origin = "/h/0/Norm";
  compute.reason = kOddName;
  Node release{OpKind::free_unit, {y}, {}};
  for (Node& node : std::vector<Node>{load, compute, release}) graph.add_node(node);

  graph.inputs = {second, first};
  graph.outputs = {{"logits", y}, {kOddName, z}};
  graph.loss = {z, y, "mean of " + std::string(kOddName)};
  graph.eval_loss = {z, kNone, "sum"};
  graph.gradients = {{0, y}, {1, z}};
  graph.state_updates = {{Program::update, graph.units[0].weights_state, y}, {Program::eval_end, y, z}};
  graph.statistics = {{y, z, first, second, 0.75, graph.units[0].weights_state}};
  graph.source = {{OpKind::add, {kNone, dead}, {y, z}, {{Attr::axis, int64_t{1}}}, Program::eval_step}};
  return graph;
}

TEST(Text, PrintsTheSameAfterParsing) {
  const std::string text = print_graph(full_graph());
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

// Every integer type with the ends of its range; an element that its type cannot hold is refused where it stands.
TEST(Text, IntegersAreWrittenAsTheyAre) {
  Graph graph;
  for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
    HostTensor ends(dtype, {2});
    visit_dtype(dtype, [&](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      ends.mutable_as<decltype(zero)>()[0] = Limits::min();
      ends.mutable_as<decltype(zero)>()[1] = Limits::max();
    });
    const std::string name(dtype_name(dtype));
    graph.outputs[name] = add_constant(graph, name, ends);
  }
  const std::string text = print_graph(graph);
  EXPECT_THAT(text, HasSubstr(" 0 18446744073709551615"));
  EXPECT_THAT(text, HasSubstr(" -128 127"));
  const Graph after = parse_graph(text);
  for (size_t i = 0; i < graph.values.size(); ++i)
    EXPECT_TRUE(after.value(after.find(graph.values[i].name)).constant == graph.values[i].constant) << graph.values[i].name;
  std::string wide = text;
  wide.replace(wide.find(" -128 127"), 9, " -128 128");
  try {
    parse_graph(wide);
    ADD_FAILURE() << "128 was read as int8";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("128 lies outside -128 … 127"));
  }
}

TEST(Text, KeepsEveryField) {
  const Graph before = full_graph();
  const Graph after = parse_graph(print_graph(before));
  ASSERT_EQ(after.parameters.size(), 2u);
  EXPECT_EQ(after.parameters[0].source.file, "model.onnx.data");
  EXPECT_EQ(after.parameters[0].source.offset, 4096);
  EXPECT_EQ(after.parameters[0].source.type, StoredType::f64);
  EXPECT_TRUE(after.parameters[0].aliases.at(0).transposed);
  EXPECT_EQ(after.parameters[0].split_uses, before.parameters[0].split_uses);
  EXPECT_EQ(after.parameters[0].role_reason, before.parameters[0].role_reason);
  EXPECT_EQ(after.parameters[1].name, kOddName);
  EXPECT_FALSE(after.parameters[1].trainable);

  ASSERT_EQ(after.nodes.size(), 3u);
  const Node& node = after.nodes[1];
  EXPECT_EQ(node.attributes, before.nodes[1].attributes);
  EXPECT_EQ(node.reason, kOddName);
  EXPECT_TRUE(node.backward);
  EXPECT_EQ(node.inputs.at(1), kNone);
  EXPECT_EQ(after.value(node.outputs.at(0)).producer, 1);
  EXPECT_EQ(after.value(node.outputs.at(0)).unit, 1);
  EXPECT_EQ(after.value(node.outputs.at(0)).copy_of, after.find("w"));
  EXPECT_TRUE(after.value(after.find("c")).constant == before.value(before.find("c")).constant);
  EXPECT_EQ(after.value(after.inputs.at(0)).name, kOddName);
  EXPECT_EQ(after.loss.description, before.loss.description);
  EXPECT_EQ(after.units[0].moments.size(), 2u);
  EXPECT_EQ(after.units[0].gradients, Placement::replicated);
  EXPECT_EQ(after.units[0].gradient_dtype, DType::i64);
  EXPECT_EQ(after.units[0].reduce_dtype, DType::bf16);
  EXPECT_EQ(after.state_updates.at(1).program, Program::eval_end);
  ASSERT_EQ(after.statistics.size(), 1u);
  EXPECT_EQ(after.value(after.statistics[0].mean).name, before.value(before.statistics[0].mean).name);
  EXPECT_EQ(after.value(after.statistics[0].running_variance).name, before.value(before.statistics[0].running_variance).name);
  EXPECT_EQ(after.value(after.statistics[0].recorded).name, before.value(before.statistics[0].recorded).name);
  EXPECT_EQ(after.statistics[0].momentum, 0.75);
  EXPECT_EQ(after.source.at(0).program, Program::eval_step);
}

TEST(Text, ParametersSayWhatTheyAre) {
  Graph graph;
  graph.parameters.resize(3);
  graph.parameters[1].trainable = false;
  graph.parameters[2].trainable = false;
  graph.parameters[2].statistics = true;
  const Graph after = parse_graph(print_graph(graph));
  EXPECT_TRUE(after.parameters[0].trainable);
  EXPECT_FALSE(after.parameters[1].trainable || after.parameters[1].statistics);
  EXPECT_TRUE(!after.parameters[2].trainable && after.parameters[2].statistics);
}

TEST(Text, ReadsLikeTheModel) {
  const std::string text = print_graph(full_graph());
  EXPECT_THAT(text, HasSubstr("weight %w:f32[4,3]{parameter=0}\n"));
  EXPECT_THAT(text, HasSubstr("constant %c:f32[3] = 0.1 -0 1e-45\n"));
  EXPECT_THAT(text, HasSubstr("program load\n  %weights = load_unit() unit=0\nprogram micro_step\n"));
  EXPECT_THAT(text, HasSubstr("= layer_norm(%w, -, %ids, %c) {axis=-1, axes=[0,-2], shape=[], epsilon=1e-05, scale=-inf,"));
  EXPECT_THAT(text, HasSubstr("  free_unit(%y)\n"));
}

class TextConstant : public testing::TestWithParam<DType> {};

TEST_P(TextConstant, KeepsEveryBit) {
  for (int64_t count : {0, 1, 16, 17}) {
    Graph graph;
    HostTensor tensor(GetParam(), {count});
    for (int64_t i = 0; i < count; ++i)
      tensor.set(i, is_floating(GetParam()) ? std::sin(1.0 + static_cast<double>(i)) : static_cast<double>(i * 7));
    graph.outputs["c"] = add_constant(graph, "c", tensor);
    const Graph parsed = parse_graph(print_graph(graph));
    EXPECT_TRUE(parsed.value(parsed.outputs.at("c")).constant == tensor) << print_graph(graph);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TextConstant, testing::ValuesIn(kDTypes));

TEST(Text, KeepsTheExtremesOfNumbers) {
  Graph graph;
  HostTensor integers(DType::i64, {2});
  integers.set_int(0, std::numeric_limits<int64_t>::min());
  integers.set_int(1, std::numeric_limits<int64_t>::max());
  const HostTensor reals = HostTensor::of(DType::f64, {4}, std::vector<double>{5e-324, 1.7976931348623157e308, INFINITY, -INFINITY});
  const HostTensor none = HostTensor::of(DType::f32, {1}, std::vector<float>{-NAN});
  graph.outputs = {
      {"i", add_constant(graph, "i", integers)}, {"r", add_constant(graph, "r", reals)}, {"n", add_constant(graph, "n", none)}};
  const Graph parsed = parse_graph(print_graph(graph));
  EXPECT_TRUE(parsed.value(parsed.outputs.at("i")).constant == integers);
  EXPECT_TRUE(parsed.value(parsed.outputs.at("r")).constant == reals);
  EXPECT_TRUE(parsed.value(parsed.outputs.at("n")).constant == none);
}

TEST(Text, HashFollowsTheText) {
  Graph graph = full_graph();
  const uint64_t hash = graph_hash(graph);
  EXPECT_EQ(graph_hash(parse_graph(print_graph(graph))), hash);
  graph.nodes[1].attributes.set(Attr::axis, int64_t{0});
  EXPECT_NE(graph_hash(graph), hash);
}

TEST(Text, ValuesWithoutReaderAreLeftOutIfTheyHoldNothing) {
  Graph graph;
  add_value(graph, "gone", ValueKind::computed, DType::f32, {});
  add_constant(graph, "unused", HostTensor(DType::f32, {}));
  add_value(graph, "kept", ValueKind::state, DType::f32, {});
  EXPECT_EQ(print_graph(graph), "state %kept:f32[]\n");
}

}  // namespace
}  // namespace zeroplan
