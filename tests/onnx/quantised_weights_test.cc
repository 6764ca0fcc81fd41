// Integer weights with a scale: trained as what they stand for, read rounded, written back as integers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/saved_tensor.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename T>
onnx::TensorProto& add_tensor(ModelBuilder& m, const std::string& name, int type, const std::vector<int64_t>& dims,
                              const std::vector<T>& values) {
  onnx::TensorProto& tensor = *m.proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
  return tensor;
}

struct Scales {
  std::vector<int64_t> dims;
  std::vector<float> values;
  std::map<std::string, int64_t> attributes = {};  // axis, block_size
};

// x[N,3] * DequantizeLinear(q [2,3], s, z), mean over all; without z where `zeros` is empty.
template <typename T>
ModelBuilder dequantised(int type, const std::vector<T>& numbers, const Scales& s, const std::vector<T>& zeros) {
  ModelBuilder m(21);
  m.proto.set_ir_version(10);
  m.input("x", {"N", "2", "3"}).output("loss", {});
  add_tensor(m, "q", type, {2, 3}, numbers);
  m.weight("s", s.dims, s.values);
  if (!zeros.empty()) add_tensor(m, "z", type, s.dims, zeros);
  m.add("DequantizeLinear", zeros.empty() ? std::vector<std::string>{"q", "s"} : std::vector<std::string>{"q", "s", "z"}, "w",
        s.attributes);
  m.node("Mul", {"x", "w"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  return m;
}

const std::vector<int8_t> kNumbers = {-128, 127, 3, 0, -7, 50};

// One scale per column; zero points 1, -2, 0.
ModelBuilder per_column() {
  return dequantised<int8_t>(onnx::TensorProto::INT8, kNumbers, {{3}, {0.5f, 0.125f, 3}, {{"axis", 1}}}, {1, -2, 0});
}

std::vector<float> masters(const std::string& path, const Parameter& p) {
  WeightFiles files(path);
  std::vector<float> values(elements(p.shape));
  read_weight(files, p.source, 0, static_cast<int64_t>(values.size()), DType::f32, values.data());
  return values;
}

double loss_with(const ImportedModel& model, const std::vector<float>& weights, const HostTensor& x) {
  std::map<ValueId, HostTensor> values;
  for (size_t i = 0; i < model.graph.values.size(); ++i)
    if (model.graph.values[i].kind == ValueKind::parameter)
      values[static_cast<ValueId>(i)] = HostTensor::of(DType::f32, model.graph.values[i].shape, weights);
  for (const ImportedInput& input : model.inputs)
    values[input.value] = input.mask ? HostTensor::of(DType::boolean, {x.shape()[0]}, std::vector<int>(x.shape()[0], 1)) : x;
  evaluate_program(model.graph, Program::micro_step, values);
  const Loss& loss = model.graph.loss;
  const HostTensor weight =
      model.graph.value(loss.weight).kind == ValueKind::constant ? model.graph.value(loss.weight).constant : values.at(loss.weight);
  return values.at(loss.sum).get(0) / weight.get(0);
}

GiveParameters giving(const std::vector<float>& values) {
  return [values](const TakeParameter& take) { take(0, std::as_bytes(std::span(values))); };
}

template <typename T>
std::vector<int> integers_in(const std::string& path, const std::string& name) {
  const onnx::ModelProto model = load_model(path);
  std::vector<int> list;
  for (const char* at = saved_tensor(model, name).raw_data().data();
       list.size() < saved_tensor(model, name).raw_data().size() / sizeof(T);) {
    T value;
    std::memcpy(&value, at + list.size() * sizeof(T), sizeof(T));
    list.push_back(value);
  }
  return list;
}

const HostTensor kX = HostTensor::of<float>(DType::f32, {1, 2, 3}, {1, 2, 3, 4, 5, 6});

TEST(QuantisedWeights, TheMasterIsWhatTheIntegersStandFor) {
  TemporaryFolder folder;
  ModelBuilder m = per_column();
  const std::string path = m.save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(1));
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  const Parameter& p = model.graph.parameters[0];
  EXPECT_EQ(p.name, "q");
  EXPECT_TRUE(p.trainable);
  EXPECT_EQ(p.role_reason, "quantised weight on a gradient path");
  EXPECT_THAT(model.report, Contains(AllOf(HasSubstr("1 parameter is stored as int8 with a scale"), HasSubstr("float32"))));
  const std::vector<float> values = masters(path, p);
  EXPECT_THAT(values, ElementsAre(-129 * 0.5f, 129 * 0.125f, 9, -0.5f, -5 * 0.125f, 150));
  double expected = 0;
  for (int64_t i = 0; i < 6; ++i) expected += kX.get(i) * values[i] / 6;
  EXPECT_NEAR(evaluate_loss(model, {{"x", kX}}), expected, 1e-4);
}

// What is read is rounded to the steps of the scale, and held within the type.
TEST(QuantisedWeights, ReadersSeeRoundedValues) {
  TemporaryFolder folder;
  const std::string path = per_column().save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(1));
  const std::vector<float> before = masters(path, model.graph.parameters[0]);
  const double loss = loss_with(model, before, kX);
  const auto moved = [&](size_t element, float by) {
    std::vector<float> values = before;
    values[element] += by;
    return (loss_with(model, values, kX) - loss) * 6 / kX.get(static_cast<int64_t>(element));
  };
  EXPECT_EQ(moved(2, 1.4f), 0);
  EXPECT_NEAR(moved(2, 1.6f), 3, 1e-4);
  EXPECT_NEAR(moved(2, 1.5f), 3, 1e-4);   // 3.5 steps: to the even 4
  EXPECT_NEAR(moved(5, -1.5f), 0, 1e-4);  // 49.5 steps: to the even 50
  EXPECT_EQ(moved(1, 40), 0);             // is the largest already
  EXPECT_EQ(moved(0, -40), 0);
}

TEST(QuantisedWeights, WhatDidNotMoveIsTheSameFile) {
  TemporaryFolder folder;
  const auto unmoved = [&](ModelBuilder m) {
    const std::string path = m.save(folder.file("m.onnx"));
    const ImportedModel model = import_model(path, samples(1));
    EXPECT_EQ(model.graph.parameters.size(), 1u);
    export_model(path, folder.file("out.onnx"), model.graph.parameters, giving(masters(path, model.graph.parameters[0])));
    EXPECT_EQ(load_model(folder.file("out.onnx")).DebugString(), m.proto.DebugString());
    return evaluate_loss(model, {{"x", kX}});
  };
  unmoved(per_column());
  unmoved(dequantised<int8_t>(onnx::TensorProto::INT8, kNumbers, {{}, {0.37f}}, {}));
  unmoved(dequantised<uint8_t>(onnx::TensorProto::UINT8, {0, 255, 7, 1, 2, 3}, {{}, {1e-3f}}, {128}));
  unmoved(dequantised<int16_t>(onnx::TensorProto::INT16, {-32768, 32767, 7, 1, 2, 3}, {{2}, {1e-3f, 7}, {{"axis", 0}}}, {3, -3}));
  unmoved(dequantised<uint16_t>(onnx::TensorProto::UINT16, {0, 65535, 7, 1, 2, 3}, {{1}, {0.3f}}, {32768}));
  // Sums of products: more digits than a float has.
  unmoved(dequantised<int32_t>(onnx::TensorProto::INT32, {-2147483647, 2147483647, 123456789, 1, 2, 3}, {{}, {1e-7f}}, {0}));
  // Blocks of two along the last axis: scales [2,2].
  const double blocked = unmoved(
      dequantised<int8_t>(onnx::TensorProto::INT8, kNumbers, {{2, 2}, {1, 10, 100, 1000}, {{"axis", 1}, {"block_size", 2}}}, {0, 1, 2, 3}));
  const double expected = (1 * -128 + 2 * 127 + 3 * 20.0 + 4 * -200 + 5 * -900 + 6 * 47000.0) / 6;
  EXPECT_NEAR(blocked, expected, 1e-2);
}

// q = saturate(round half to even(w / scale) + zero point).
TEST(QuantisedWeights, TrainedValuesAreWrittenAsIntegersOfTheSameScale) {
  TemporaryFolder folder;
  const std::string path = per_column().save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(1));
  // Steps: 2.5 → 2 + 1, -200 → -128, 0.49 → 0; 1e9 → 127, 3.5 → 4 - 2, -1.5 → -2.
  export_model(path, folder.file("out.onnx"), model.graph.parameters, giving({1.25f, -20, 1.47f, 1e9f, 0.4375f, -4.5f}));
  EXPECT_THAT(integers_in<int8_t>(folder.file("out.onnx"), "q"), ElementsAre(3, -128, 0, 127, 2, -2));
  EXPECT_EQ(saved_tensor(load_model(folder.file("out.onnx")), "s").raw_data(), saved_tensor(load_model(path), "s").raw_data());
  EXPECT_THAT(message([&] {
                export_model(path, folder.file("bad.onnx"), model.graph.parameters, giving({0, NAN, 0, 0, 0, 0}));
              }),
              AllOf(HasSubstr("'q'"), HasSubstr("element 1 is nan"), HasSubstr("int8")));
  // The exported file computes what the masters computed.
  const double rounded = loss_with(model, {1.25f, -20, 1.47f, 1e9f, 0.4375f, -4.5f}, kX);
  EXPECT_EQ(evaluate_loss(import_model(folder.file("out.onnx"), samples(1)), {{"x", kX}}), rounded);
}

// ONNX's helpers store small tensors as numbers.
TEST(QuantisedWeights, NumbersOfInt32Data) {
  TemporaryFolder folder;
  ModelBuilder m = per_column();
  for (const int i : {0, 2}) {
    onnx::TensorProto& tensor = *m.proto.mutable_graph()->mutable_initializer(i);
    const std::string raw = tensor.raw_data();
    tensor.clear_raw_data();
    for (const char c : raw) tensor.add_int32_data(static_cast<int8_t>(c));
  }
  const std::string path = m.save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(1));
  EXPECT_THAT(masters(path, model.graph.parameters.at(0)), ElementsAre(-129 * 0.5f, 129 * 0.125f, 9, -0.5f, -5 * 0.125f, 150));
}

TEST(QuantisedWeights, IntegersWithoutOneStoredScaleAreConstants) {
  TemporaryFolder folder;
  const auto imported = [&](const std::function<void(ModelBuilder&)>& change, ImportOptions options = samples(1)) {
    ModelBuilder m = per_column();
    m.weight("factor", {3}, {1, 1, 1});
    m.proto.mutable_graph()->mutable_node(1)->set_input(0, "scaled");
    m.node("Mul", {"x", "factor"}, {"scaled"});
    m.proto.mutable_graph()->mutable_node()->SwapElements(1, 3);
    m.proto.mutable_graph()->mutable_node()->SwapElements(2, 3);
    change(m);
    return import_model(m.save(folder.file("m.onnx")), options);
  };
  const auto reason = [&](const ImportedModel& model) {
    for (const RoleRow& row : model.roles)
      if (row.initializer == "q") return row.reason;
    return std::string("no row");
  };
  const auto computed = [](ModelBuilder& m) {
    m.weight("half", {3}, {0.5f, 0.5f, 0.5f});
    m.node("Mul", {"s", "half"}, {"t"});
    auto& nodes = *m.proto.mutable_graph()->mutable_node();
    for (int i = nodes.size() - 1; i > 0; --i) nodes.SwapElements(i, i - 1);
    nodes.Mutable(1)->set_input(1, "t");
  };
  const ImportedModel model = imported(computed);
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  EXPECT_EQ(model.graph.parameters[0].name, "factor");
  EXPECT_EQ(reason(model), "its scale 't' is not stored in one piece");
  ImportOptions train = samples(1);
  train.train = {"^q$"};
  EXPECT_THAT(message([&] { imported(computed, train); }),
              HasSubstr("--train matches the quantised 'q', which cannot be trained: its scale 't' is not stored in one piece"));
  EXPECT_EQ(imported([](ModelBuilder&) {}).graph.parameters.size(), 2u);
  const auto twice = [](ModelBuilder& m) {
    m.node("Cast", {"q"}, {"as_float"});
    ModelBuilder::set(*m.proto.mutable_graph()->mutable_node(4), "to", int64_t{1});
    m.node("Add", {"loss", "as_float"}, {"unread"});
  };
  EXPECT_EQ(reason(imported(twice)), "node 'node_as_float' reads its integers");
  ImportOptions frozen = samples(1);
  frozen.freeze = {"^q$"};
  const ImportedModel kept = imported([](ModelBuilder&) {}, frozen);
  for (const Parameter& p : kept.graph.parameters) EXPECT_EQ(p.trainable, p.name != "q");
}

// Where nothing is trained there is no master: the integers are constants.
TEST(QuantisedWeights, PredictionReadsTheIntegers) {
  TemporaryFolder folder;
  ImportOptions options = samples(1);
  options.outputs = {"loss"};
  EXPECT_THAT(import_model(per_column().save(folder.file("m.onnx")), options).graph.parameters, IsEmpty());
}

}  // namespace
}  // namespace zeroplan
