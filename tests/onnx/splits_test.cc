// Tensors that an exporter merged because they were equal, by what its metadata tells of each reader.
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
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

void note(onnx::StringStringEntryProto& entry, const char* key, const std::string& text) {
  entry.set_key(key);
  entry.set_value(text);
}

std::string argument(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return "p_" + name;
}

// As PyTorch's exporter writes it: a signature of all tensors of the module, and for each node the call that it came from.
class TorchModel : public ModelBuilder {
 public:
  explicit TorchModel(const std::vector<std::string>& parameters, const std::vector<std::string>& buffers = {}) {
    input("x", {"N", "3"}).output("loss", {});
    std::string text = "\n# inputs\n";
    for (const std::string& name : parameters) text += argument(name) + ": PARAMETER target='" + name + "'\n";
    for (const std::string& name : buffers) text += "b_" + name + ": BUFFER target='" + name + "' persistent=True\n";
    note(*proto.mutable_graph()->add_metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature", text);
  }
  void parameter(const std::string& name, std::vector<int64_t> dims, const std::vector<float>& values) {
    weight(name, std::move(dims), values);
    onnx::ValueInfoProto& info = *proto.mutable_graph()->add_value_info();
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    note(*info.add_metadata_props(), "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
    note(*info.add_metadata_props(), "pkg.torch.onnx.original_node_name", argument(name));
  }
  onnx::NodeProto& call(const std::string& op, std::vector<std::string> inputs, const std::string& to, const std::string& arguments) {
    onnx::NodeProto& n = node(op, std::move(inputs), {to});
    note(*n.add_metadata_props(), "pkg.torch.onnx.fx_node",
         "%" + to + " : [num_users=1] = call_function[target=torch.ops.aten.f.default](args = (" + arguments + "), kwargs = {})");
    return n;
  }
  ImportedModel import(const ImportOptions& options = samples(2)) {
    add("ReduceMean", {proto.graph().node(proto.graph().node_size() - 1).output(0)}, "loss", {{"keepdims", 0}});
    TemporaryFolder folder;
    return import_model(save(folder.file("m.onnx")), options);
  }
};

std::vector<std::string> trained(const ImportedModel& model) {
  std::vector<std::string> names;
  for (const Parameter& p : model.graph.parameters)
    if (p.trainable) names.push_back(p.name);
  return names;
}

const std::vector<float> kSquare = {1, 2, 3, 4, 5, 6, 7, 8, 9};

// Two layers, the second a copy of the first; the weight is stored transposed.
TorchModel copied_layers() {
  TorchModel m({"l.0.in_proj_weight", "l.0.in_proj_bias", "l.1.in_proj_weight", "l.1.in_proj_bias"});
  m.parameter("l.0.in_proj_bias", {3}, {1, 2, 3});
  note(*m.weight("val_1", {3, 3}, kSquare).add_metadata_props(), "pkg.onnxscript.optimizer.folded_from", "['l.0.in_proj_weight']");
  const char* first = "%x, %p_l_0_in_proj_weight, %p_l_0_in_proj_bias";
  const char* second = "%linear, %p_l_1_in_proj_weight, %p_l_1_in_proj_bias";
  m.call("MatMul", {"x", "val_1"}, "val_2", first);
  m.call("Add", {"val_2", "l.0.in_proj_bias"}, "linear", first);
  m.call("MatMul", {"linear", "val_1"}, "val_3", second);
  m.call("Add", {"val_3", "l.0.in_proj_bias"}, "linear_1", second);
  return m;
}

TEST(Splits, CopiedLayersAreTrainedApart) {
  TorchModel m = copied_layers();
  const ImportedModel model = m.import();
  EXPECT_THAT(trained(model), UnorderedElementsAre("l.0.in_proj_weight", "l.0.in_proj_bias", "l.1.in_proj_weight", "l.1.in_proj_bias"));
  EXPECT_THAT(model.report, Contains(HasSubstr("split: 'l.1.in_proj_weight'")));
}

TEST(Splits, TieKeepsCopiedLayersOne) {
  TorchModel m = copied_layers();
  ImportOptions options = samples(2);
  options.tie = {"l.0.in_proj_bias", "val_1"};
  EXPECT_THAT(trained(m.import(options)), UnorderedElementsAre("l.0.in_proj_weight", "l.0.in_proj_bias"));
}

TEST(Splits, AWeightThatWasOneStaysOne) {
  TorchModel m({"a.weight", "b.weight"});
  m.parameter("b.weight", {3, 3}, kSquare);
  m.call("MatMul", {"x", "b.weight"}, "mm", "%x, %p_b_weight");
  m.call("MatMul", {"mm", "b.weight"}, "mm_1", "%mm, %p_b_weight");
  EXPECT_THAT(trained(m.import()), UnorderedElementsAre("b.weight"));
}

TorchModel large_table() {
  TorchModel m({"a.table", "b.table"});
  std::vector<float> values(3 * 342);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  m.parameter("a.table", {342, 3}, values);
  m.call("Mul", {"a.table", "a.table"}, "mul", "%p_a_table, %p_b_table");
  m.proto.mutable_graph()->clear_input();
  return m;
}

// No exporter merges tensors of that size: whoever did meant one weight.
TEST(Splits, ALargeTensorStaysOneWithALine) {
  TorchModel one = large_table(), two = large_table();
  const ImportedModel model = one.import({});
  EXPECT_THAT(trained(model), UnorderedElementsAre("a.table"));
  EXPECT_THAT(model.report, Contains(HasSubstr("'a.table' stands at node 'node_mul' for 'b.table'")));
  ImportOptions apart;
  apart.untie = {"a.table"};
  EXPECT_THAT(trained(two.import(apart)), UnorderedElementsAre("a.table", "b.table"));
}

TEST(Splits, OneNodeThatReadsATensorForTwo) {
  TorchModel m({"n.weight", "n.bias"});
  m.parameter("n.weight", {3}, {1, 2, 3});
  m.call("LayerNormalization", {"x", "n.weight", "n.weight"}, "norm", "%x, [3], %p_n_weight, %p_n_bias, 1e-05, False");
  EXPECT_THAT(trained(m.import()), UnorderedElementsAre("n.weight", "n.bias"));
}

TEST(Splits, AConstantMergedIntoAParameterIsNotTrained) {
  TorchModel m({"t"});
  m.parameter("t", {}, {2});
  m.call("Mul", {"x", "t"}, "mul", "%x, %p_t");
  m.call("Add", {"mul", "t"}, "add", "%mul, 2.0");
  const ImportedModel model = m.import();
  EXPECT_THAT(trained(model), UnorderedElementsAre("t"));
  ASSERT_EQ(model.graph.parameters.size(), 2u);
  EXPECT_EQ(model.graph.parameters[1].name, "t_constant");
  EXPECT_EQ(model.graph.parameters[1].split_uses.size(), 1u);
}

// Trained to other values, a part has its own name and kind in the file.
TEST(Splits, AnExportKeepsThemApart) {
  TorchModel with_buffer({"l.shift"}, {"mean"});
  with_buffer.parameter("l.shift", {1}, {1});
  with_buffer.call("Add", {"x", "l.shift"}, "add", "%x, %p_l_shift");
  with_buffer.call("Sub", {"add", "l.shift"}, "sub", "%add, %b_mean");
  with_buffer.call("Mul", {"sub", "l.shift"}, "mul", "%sub, 1.0");
  for (TorchModel m : {copied_layers(), with_buffer}) {
    m.add("ReduceMean", {m.proto.graph().node(m.proto.graph().node_size() - 1).output(0)}, "loss", {{"keepdims", 0}});
    TemporaryFolder folder;
    const ImportedModel before = import_model(m.save(folder.file("m.onnx")), samples(2));
    export_model(folder.file("m.onnx"), folder.file("trained.onnx"), before.graph.parameters, [&](const TakeParameter& take) {
      for (size_t i = 0; i < before.graph.parameters.size(); ++i) {
        const std::vector<float> values(elements(before.graph.parameters[i].shape), static_cast<float>(i) + 0.5f);
        take(static_cast<int>(i), std::as_bytes(std::span(values)));
      }
    });
    const ImportedModel after = import_model(folder.file("trained.onnx"), samples(2));
    EXPECT_THAT(trained(after), testing::UnorderedElementsAreArray(trained(before)));
    EXPECT_THAT(after.report, testing::Not(Contains(HasSubstr("holds other values"))));
  }
}

// The call names a value that a view of the parameter was: %view is no literal.
TEST(Splits, AParameterReadThroughAViewIsTrainedThere) {
  TorchModel m({"t"});
  m.parameter("t", {1}, {2});
  m.call("Mul", {"x", "t"}, "mul", "%x, %p_t");
  m.call("Add", {"mul", "t"}, "add", "%mul, %view");
  EXPECT_EQ(m.import().graph.parameters.size(), 1u);
}

TEST(Splits, ABufferMergedIntoAParameterIsNotTrained) {
  TorchModel m({"shift"}, {"mean"});
  m.parameter("shift", {3}, {0, 0, 0});
  m.call("Add", {"x", "shift"}, "add", "%x, %p_shift");
  m.call("Sub", {"add", "shift"}, "sub", "%add, %b_mean");
  const ImportedModel model = m.import();
  EXPECT_THAT(trained(model), UnorderedElementsAre("shift"));
  EXPECT_EQ(model.graph.parameters.size(), 2u);
}

TEST(Splits, WhatIsNotToldIsRefused) {
  TorchModel m({"a.scale", "b.gain", "b.shift"});
  m.parameter("a.scale", {3}, {1, 2, 3});
  m.call("Mul", {"x", "a.scale"}, "mul", "%x, %p_a_scale");
  m.call("Add", {"mul", "a.scale"}, "add", "%mul, %p_b_gain, %p_b_shift");
  TorchModel tied = m;
  EXPECT_THAT([&] { m.import(); }, ThrowsMessage<Error>(HasSubstr("one of 'p_b_gain', 'p_b_shift'")));
  ImportOptions one = samples(2);
  one.tie = {"a.scale"};
  EXPECT_EQ(tied.import(one).graph.parameters.size(), 1u);
}

// TorchScript's exporter puts an Identity where it merged by value, and nothing where a weight was one.
TEST(Splits, IdentityOfTorchScript) {
  ModelBuilder m;
  m.proto.set_producer_name("pytorch");
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("a.weight", {3, 3}, kSquare);
  m.node("Identity", {"a.weight"}, {"b.weight"});
  m.node("MatMul", {"x", "a.weight"}, {"xa"});
  m.node("MatMul", {"xa", "b.weight"}, {"xab"});
  m.add("ReduceMean", {"xab"}, "loss", {{"keepdims", 0}});
  TemporaryFolder folder;
  EXPECT_THAT(trained(import_model(m.save(folder.file("m.onnx")), samples(2))), UnorderedElementsAre("a.weight", "b.weight"));
}

TEST(Splits, WhatTheExporterLeftOutIsNamed) {
  TorchModel m({"a.weight", "a.bias", "gain"});
  m.parameter("a.weight", {3, 3}, kSquare);
  m.call("Gemm", {"x", "a.weight"}, "linear", "%x, %p_a_weight, %p_a_bias");
  const ImportedModel model = m.import();
  EXPECT_THAT(model.report, Contains(HasSubstr("parameter 'a.bias', with which node 'node_linear' was made, is not in the file")));
  EXPECT_THAT(model.report, Contains(HasSubstr("no node names: 'gain'")));
}

}  // namespace
}  // namespace zeroplan
