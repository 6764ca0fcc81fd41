// Rules of the import on small models: roles, ties, splits, dims, losses, problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> names(const ImportedModel& model) {
  std::vector<std::string> list;
  for (const Parameter& p : model.graph.parameters) list.push_back(p.name);
  return list;
}

// Table under Gather and its transpose under MatMul, both the identity: one row's scores, the loss is the score of class 1.
ModelBuilder tied_model() {
  ModelBuilder m;
  m.input("i", {"1"}, onnx::TensorProto::INT64).output("loss", {});
  m.weight("table", {2, 2}, {1, 0, 0, 1});
  m.weight("head", {2, 2}, {1, 0, 0, 1});
  m.ints("from", {1}, {1});
  m.ints("to", {1}, {2});
  m.ints("axis", {1}, {1});
  m.node("Gather", {"table", "i"}, {"e"});
  m.node("MatMul", {"e", "head"}, {"scores"});
  m.node("Slice", {"scores", "from", "to", "axis"}, {"one"});
  m.add("ReduceSum", {"one"}, "loss", {{"keepdims", 0}});
  return m;
}

TEST(Ties, AnEmbeddingAndItsTransposeAreOneParameter) {
  TemporaryFolder folder;
  const ImportedModel model = import_model(tied_model().save(folder.file("m.onnx")), {});
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  ASSERT_EQ(model.graph.parameters[0].aliases.size(), 1u);
  EXPECT_EQ(model.graph.parameters[0].aliases[0].initializer, "head");
  EXPECT_TRUE(model.graph.parameters[0].aliases[0].transposed);
  EXPECT_EQ(evaluate_loss(model, {{"i", HostTensor::of<int64_t>(DType::i64, {1}, {0})}}), 0.0);
  EXPECT_EQ(model.inputs[0].limit, 2);
  ImportOptions apart;
  apart.untie = {"head"};
  EXPECT_EQ(import_model(folder.file("m.onnx"), apart).graph.parameters.size(), 2u);
}

TEST(Ties, UnequalTablesStayApart) {
  TemporaryFolder folder;
  ModelBuilder m = tied_model();
  const float other[] = {1, 0, 0.5f, 1};
  m.proto.mutable_graph()->mutable_initializer(1)->set_raw_data(other, sizeof other);
  EXPECT_EQ(import_model(m.save(folder.file("m.onnx")), {}).graph.parameters.size(), 2u);
}

// Equal first and last elements tell nothing; a square transpose that was taken for a copy would be read the wrong way round.
TEST(Ties, ASquareTransposeIsNoCopy) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"1", "2"}).output("loss", {});
  m.weight("a", {2, 2}, {1, 2, 3, 4});
  m.weight("b", {2, 2}, {1, 3, 2, 4});
  m.node("MatMul", {"x", "a"}, {"xa"});
  m.node("MatMul", {"xa", "b"}, {"xab"});
  m.add("ReduceSum", {"xab"}, "loss", {{"keepdims", 0}});
  ImportOptions options;
  options.tie = {"^[ab]$"};
  const HostTensor x = HostTensor::of<float>(DType::f32, {1, 2}, {1, 10});
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  ASSERT_EQ(model.graph.parameters[0].aliases.size(), 1u);
  EXPECT_TRUE(model.graph.parameters[0].aliases[0].transposed);
  EXPECT_EQ(evaluate_loss(model, {{"x", x}}), 31 * 4 + 42 * 6);
  const float other[] = {1, 5, 6, 4};
  m.proto.mutable_graph()->mutable_initializer(1)->set_raw_data(other, sizeof other);
  EXPECT_EQ(import_model(m.save(folder.file("m.onnx")), options).graph.parameters.size(), 2u);
}

TEST(Roles, ScalarsAndVectorsWithoutMetadataAreTrained) {
  TemporaryFolder folder;
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, std::vector<int64_t>{1}}) {
    ModelBuilder m;
    m.input("x", {"N", "3"}).output("loss", {});
    m.weight("s", dims, {2});
    m.node("Mul", {"x", "s"}, {"y"});
    m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
    const ImportedModel model = import_model(m.save(folder.file("m.onnx")), samples(2));
    EXPECT_THAT(names(model), ElementsAre("s"));
    EXPECT_DOUBLE_EQ(evaluate_loss(model, {{"x", HostTensor::of<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}}), 7.0);
  }
}

void note(onnx::StringStringEntryProto& entry, const char* key, const char* value) {
  entry.set_key(key);
  entry.set_value(value);
}

TEST(Roles, AnExponentIsTrainedWhereTheFileSaysSo) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "2"}).output("loss", {});
  m.weight("scale", {2}, {1, 1});
  m.weight("p", {2}, {2, 3});
  m.node("Mul", {"x", "scale"}, {"y"});
  m.node("Pow", {"y", "p"}, {"z"});
  m.add("ReduceMean", {"z"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(names(import_model(m.save(folder.file("plain.onnx")), samples(2))), ElementsAre("scale"));
  for (const char* name : {"scale", "p"}) {
    onnx::ValueInfoProto& info = *m.proto.mutable_graph()->add_value_info();
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    note(*info.add_metadata_props(), "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
  }
  EXPECT_THAT(names(import_model(m.save(folder.file("torch.onnx")), samples(2))), ElementsAre("scale", "p"));
  ImportOptions options = samples(2);
  options.train = {"^p$"};
  EXPECT_THAT(names(import_model(folder.file("plain.onnx"), options)), ElementsAre("scale", "p"));
}

// A weight and, folded from it, its first row: trained apart they would drift.
TEST(Roles, AValueFoldedFromATrainedWeightIsRefused) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "2"}).output("loss", {});
  m.weight("row", {2}, {1, 2});
  m.weight("w", {2, 2}, {1, 2, 3, 4});
  m.node("MatMul", {"x", "w"}, {"xw"});
  m.node("Add", {"xw", "row"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  note(*m.proto.mutable_graph()->mutable_initializer(1)->add_metadata_props(), "pkg.torch.export.graph_signature.InputSpec.kind",
       "PARAMETER");
  note(*m.proto.mutable_graph()->mutable_initializer(0)->add_metadata_props(), "pkg.onnxscript.optimizer.folded_from", "['w']");
  const std::string path = m.save(folder.file("m.onnx"));
  const std::string text = message([&] { import_model(path, samples(2)); });
  EXPECT_THAT(text, HasSubstr("'row' is a value that the exporter computed from the parameter 'w'"));
  EXPECT_THAT(text, HasSubstr("--freeze row"));
  ImportOptions frozen = samples(2), apart = samples(2);
  frozen.freeze = {"^row$"};
  EXPECT_THAT(names(import_model(path, frozen)), ElementsAre("row", "w"));
  apart.untie = {"^row$"};
  EXPECT_THAT(names(import_model(path, apart)), ElementsAre("row", "w"));
}

TEST(Roles, PatternsOverruleAndMustMatch) {
  TemporaryFolder folder;
  const std::string path = small_regression().save(folder.file("m.onnx"));
  ImportOptions options = samples(2);
  options.freeze = {"^w$"};
  const ImportedModel model = import_model(path, options);
  EXPECT_FALSE(model.graph.parameters[0].trainable);
  EXPECT_TRUE(model.graph.parameters[1].trainable);
  options.freeze = {"."};
  EXPECT_THAT(message([&] { import_model(path, options); }), HasSubstr("nothing to train"));
  options.freeze = {"nowhere"};
  EXPECT_THAT(message([&] { import_model(path, options); }), HasSubstr("'nowhere' matches no parameter"));
  options.freeze = {"("};
  EXPECT_THROW(import_model(path, options), Error);
}

TEST(Roles, LargeConstantNodesAreWeights) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "8"}).output("loss", {});
  m.constant("w", {8, 8}, std::vector<float>(64, 0.5f));
  m.node("MatMul", {"x", "w"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  EXPECT_THAT(names(import_model(m.save(folder.file("m.onnx")), samples(2))), ElementsAre("w"));
}

TEST(Dims, UnboundOnesAreReportedTogether) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("a", {"batch", "seq"}).input("b", {"batch", "seq", "width"}).output("loss", {});
  m.weight("w", {1}, {1});
  m.node("Mul", {"b", "w"}, {"bw"});
  m.node("StringNormalizer", {"bw"}, {"odd"});
  m.node("Add", {"odd", "w"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  const std::string path = m.save(folder.file("m.onnx"));
  const std::string text = message([&] { import_model(path, {}); });
  EXPECT_THAT(text, HasSubstr("'batch' of input a, b is unbound"));
  EXPECT_THAT(text, HasSubstr("'seq' of input a, b is unbound"));
  EXPECT_THAT(text, HasSubstr("'width' of input b is unbound"));
  EXPECT_THAT(text, HasSubstr("StringNormalizer"));
  const ModelPeek peek = ModelFile(path).peek();
  EXPECT_EQ(peek.sample_symbol, "batch");
  EXPECT_THAT(peek.symbols.at("seq"), ElementsAre("a", "b"));
  ImportOptions wrong = samples(2);
  wrong.dims = {{"seq", 4}, {"width", 2}, {"depth", 1}};
  EXPECT_THAT(message([&] { import_model(path, wrong); }), HasSubstr("depth"));
}

TEST(Dims, ABakedBatchIsKnownAndHeld) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression();
  m.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(4);
  const std::string path = m.save(folder.file("m.onnx"));
  EXPECT_EQ(ModelFile(path).peek().baked_batch, 4);
  const ImportedModel model = import_model(path, {});
  EXPECT_EQ(model.baked_batch, 4);
  EXPECT_EQ(model.inputs[0].sample_axis, 0);
  EXPECT_THAT(message([&] { import_model(path, samples(2)); }), HasSubstr("bakes 4 samples per micro-batch in, but the batch gives 2"));
}

// -1 and "?" name no dimension: two of them need not be equal.
TEST(Dims, UnknownOnesAreNamedByTheirPlace) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "?", "?"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.node("Mul", {"x", "w"}, {"xw"});
  m.add("ReduceMean", {"xw"}, "loss", {{"keepdims", 0}});
  onnx::TensorShapeProto& shape = *m.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(0)->set_dim_value(-1);
  const std::string path = m.save(folder.file("m.onnx"));
  EXPECT_EQ(ModelFile(path).peek().sample_symbol, "x[0]");
  ImportOptions options = samples(4);
  options.dims = {{"x[1]", 2}, {"x[2]", 3}};
  const ImportedModel model = import_model(path, options);
  EXPECT_EQ(model.graph.value(model.inputs[0].value).shape, (Shape{4, 2, 3}));
  shape.mutable_dim(1)->set_dim_value(-2);
  EXPECT_THAT(message([&] { import_model(m.save(path), options); }), HasSubstr("a dimension of -2"));
}

// x and state have a symbol each where their samples lie.
TEST(Dims, SamplesMayLieOnAxesOfSeveralSymbols) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"a", "3"}).input("state", {"3", "b"}).output("loss", {});
  m.weight("w", {3, 1}, {1, 2, 3});
  m.node("MatMul", {"x", "w"}, {"xw"});
  m.node("MatMul", {"state", "xw"}, {"both"});
  m.add("ReduceMean", {"both"}, "loss", {{"keepdims", 0}});
  const std::string path = m.save(folder.file("m.onnx"));
  EXPECT_THAT(message([&] { import_model(path, samples(2)); }), HasSubstr("dimension 'b' of input state is unbound"));
  ImportOptions options = samples(2);
  options.sample_axes = {{"x", 0}, {"state", 1}};
  const ImportedModel model = import_model(path, options);
  ASSERT_EQ(model.inputs.size(), 2u);
  EXPECT_EQ(model.graph.value(model.inputs[1].value).shape, (Shape{3, 2}));
  EXPECT_EQ(model.inputs[1].sample_axis, 1);
  EXPECT_TRUE(ModelFile(path).peek(options.sample_axes).symbols.empty());
  options.dims = {{"b", 3}};
  EXPECT_THAT(message([&] { import_model(path, options); }), HasSubstr("'b' of input state is a sample axis and is bound to 3"));
}

// Three nodes without a decoder: one on constants alone.
TEST(Problems, AllUnsupportedNodesInOneReport) {
  TemporaryFolder folder;
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  m.weight("w", {3}, {1, 2, 3});
  m.constant("c", 0.5f);
  m.node("StringNormalizer", {"c"}, {"cd"}, "on_constants");
  m.node("Mul", {"x", "w"}, {"xw"});
  m.node("StringNormalizer", {"xw"}, {"a"}, "first");
  m.node("StringNormalizer", {"a"}, {"b"}, "second");
  m.node("Add", {"b", "cd"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  const std::string text = message([&] { import_model(m.save(folder.file("m.onnx")), samples(2)); });
  EXPECT_THAT(text, HasSubstr("node 'first' (StringNormalizer, opset 18)"));
  EXPECT_THAT(text, HasSubstr("node 'second' (StringNormalizer, opset 18)"));
  EXPECT_THAT(text, Not(HasSubstr("on_constants")));
}

TEST(Problems, ConstantsAreEvaluatedAndDeadNodesIgnored) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression();
  m.node("Det", {"x"}, {"unread"});
  m.constant("c", 1);
  m.node("Atan", {"c"}, {"quarter_pi"});
  m.node("Mul", {"loss", "quarter_pi"}, {"scaled"});
  m.output("scaled", {});
  ImportOptions options = samples(1);
  options.loss = "scaled";
  const ImportedModel model = import_model(m.save(folder.file("m.onnx")), options);
  options.loss = "loss";
  const ImportedModel plain = import_model(folder.file("m.onnx"), options);
  const std::map<std::string, HostTensor> data = {{"x", HostTensor::of<float>(DType::f32, {1, 3}, {1, 2, 3})}};
  EXPECT_NEAR(evaluate_loss(model, data), evaluate_loss(plain, data) * std::atan(1.0), 1e-4);
}

}  // namespace
}  // namespace zeroplan
