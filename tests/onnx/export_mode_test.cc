// Exported models are in inference mode; what only training computes is no longer there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <onnx/checker.h>

#include "graph/onnx/export_mode.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

onnx::ModelProto parsed(const std::string& text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return model;
}

// The parser sets the default domain where others leave it out.
std::string in_words(onnx::ModelProto model) {
  for (auto& node : *model.mutable_graph()->mutable_node())
    if (node.domain().empty()) node.clear_domain();
  return model.DebugString();
}

std::string head(int opset) { return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\ncase "; }

// The model in inference mode is `expected`, which ONNX's checker accepts.
std::vector<std::string> expect_becomes(const std::string& text, const std::string& expected) {
  onnx::ModelProto model = parsed(text);
  std::vector<std::string> lines = set_inference_mode(model);
  EXPECT_EQ(in_words(model), in_words(parsed(expected)));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  return lines;
}

TEST(InferenceMode, NormsOfToday) {
  const auto norm = [](const std::string& rest, const std::string& outputs) {
    return head(15) + "(float[2,3] x) => (float[2,3] y" + rest +
           ") <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = "
           "{1,1,1}> {" +
           outputs + "}";
  };
  EXPECT_THAT(
      expect_becomes(norm("", "y, new_m, new_v = BatchNormalization <training_mode = 1, momentum = 0.9> (x, s, b, m, v)"),
                     norm("", "y = BatchNormalization <training_mode = 0, momentum = 0.9> (x, s, b, m, v)")),
      ElementsAre("1 BatchNormalization and 0 Dropouts of the file are in training mode there and in inference mode in the export"));
  // Outputs of the model keep their names, and nodes between keep reading them.
  expect_becomes(norm(", float[3] new_m, float[3] twice",
                      "y, new_m, new_v = BatchNormalization <training_mode = 1> (x, s, b, m, v) twice = Add (new_v, new_v)"),
                 norm(", float[3] new_m, float[3] twice",
                      "y = BatchNormalization <training_mode = 0> (x, s, b, m, v) [new_m_stored] new_m = Identity (m) [new_v_stored] new_v "
                      "= Identity (v) twice = Add (new_v, new_v)"));
  const std::string already = norm("", "y = BatchNormalization (x, s, b, m, v)");
  EXPECT_THAT(expect_becomes(already, already), IsEmpty());
}

TEST(InferenceMode, NormsOfOldOpsets) {
  const auto norm = [](int opset, const std::string& outputs, const std::string& attributes) {
    return head(opset) + "(float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y) {" + outputs +
           " = BatchNormalization <" + attributes + "> (x, s, b, m, v)}";
  };
  EXPECT_EQ(expect_becomes(norm(9, "y, m1, v1, m2, v2", "momentum = 0.9"), norm(9, "y", "momentum = 0.9")).size(), 1u);
  EXPECT_EQ(expect_becomes(norm(6, "y", "momentum = 0.9"), norm(6, "y", "momentum = 0.9, is_test = 1")).size(), 1u);
  EXPECT_EQ(expect_becomes(norm(6, "y", "is_test = 1"), norm(6, "y", "is_test = 1")).size(), 0u);
}

TEST(InferenceMode, Dropouts) {
  const auto dropout = [](const std::string& inputs, const std::string& before) {
    return head(13) + "(float[2,3] x) => (float[2,3] y) <float r = {0.5}, bool yes = {1}, bool no = {0}> {" + before + " y = Dropout (" +
           inputs + ")}";
  };
  EXPECT_EQ(expect_becomes(dropout("x, r, yes", ""), dropout("x, r", "")).size(), 1u);
  EXPECT_EQ(expect_becomes(dropout("x, r, no", ""), dropout("x, r, no", "")).size(), 0u);
  const std::string node = "t = Constant <value = bool {1}> ()";
  EXPECT_EQ(expect_becomes(dropout("x, r, t", node), dropout("x, r", node)).size(), 1u);
  const std::string old = head(6) + "(float[2,3] x) => (float[2,3] y) {y = Dropout <ratio = 0.5";
  EXPECT_EQ(expect_becomes(old + "> (x)}", old + ", is_test = 1> (x)}").size(), 1u);
}

TEST(InferenceMode, AModeThatIsAnInputStaysOne) {
  const std::string text = head(13) + "(float[2,3] x, bool training) => (float[2,3] y) <float r = {0.5}> {y = Dropout (x, r, training)}";
  EXPECT_THAT(expect_becomes(text, text),
              ElementsAre(HasSubstr("node 'y' (Dropout) is in training mode where its input 'training' says so")));
}

TEST(InferenceMode, InsideBranches) {
  const auto branches = [](const std::string& inputs) {
    return head(13) +
           "(float[2,3] x, bool c) => (float[2,3] y) <float r = {0.5}, bool yes = {1}> {\n y = If (c) <then_branch = a () => "
           "(float[2,3] t) { t = Dropout (" +
           inputs + ") }, else_branch = b () => (float[2,3] e) { e = Identity (x) }>\n}";
  };
  EXPECT_EQ(expect_becomes(branches("x, r, yes"), branches("x, r")).size(), 1u);
}

// A Gradient names the values of its graph by attributes.
TEST(InferenceMode, WhatAGradientNamesIsRead) {
  onnx::ModelProto model =
      parsed(head(15) +
             "(float[2,3] x) => (float[3] d) <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = "
             "{1,1,1}> {y, new_m, new_v = BatchNormalization <training_mode = 1> (x, s, b, m, v)}");
  onnx::NodeProto& gradient = *model.mutable_graph()->add_node();
  gradient.set_op_type("Gradient");
  gradient.set_domain("ai.onnx.preview.training");
  gradient.add_input("m");
  gradient.add_output("d");
  onnx::AttributeProto& xs = *gradient.add_attribute();
  xs.set_name("xs");
  xs.set_type(onnx::AttributeProto::STRINGS);
  xs.add_strings("m");
  onnx::AttributeProto& y = *gradient.add_attribute();
  y.set_name("y");
  y.set_type(onnx::AttributeProto::STRING);
  y.set_s("new_m");
  set_inference_mode(model);
  ASSERT_EQ(model.graph().node_size(), 3);
  EXPECT_EQ(model.graph().node(0).output_size(), 1);
  EXPECT_EQ(model.graph().node(1).op_type(), "Identity");
  EXPECT_EQ(model.graph().node(1).input(0), "m");
  EXPECT_EQ(model.graph().node(1).output(0), "new_m");
}

TEST(InferenceMode, InsideFunctions) {
  ModelBuilder m(15);
  m.input("x", {"2", "3"}).output("y", {"2", "3"});
  onnx::FunctionProto& function = *m.proto.add_functions();
  function.set_name("block");
  function.set_domain("local");
  auto& import = *function.add_opset_import();
  import.set_domain("");
  import.set_version(13);  // the function's, in which outputs tell the mode
  for (const char* name : {"x", "s", "b", "m", "v"}) function.add_input(name);
  function.add_output("y");
  onnx::NodeProto& norm = *function.add_node();
  norm.set_op_type("BatchNormalization");
  for (const char* name : {"x", "s", "b", "m", "v"}) norm.add_input(name);
  for (const char* name : {"y", "new_m", "new_v"}) norm.add_output(name);
  EXPECT_EQ(set_inference_mode(m.proto).size(), 1u);
  EXPECT_EQ(m.proto.functions(0).node(0).output_size(), 1);
  EXPECT_EQ(m.proto.functions(0).node_size(), 1);
}

}  // namespace
}  // namespace zeroplan
