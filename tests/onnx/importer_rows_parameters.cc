// Which tensors are weights, which of them are one, and what the file calls them.
#include <limits>

#include "base/temporary_folder.h"
#include "tests/onnx/importer_rows.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

using Save = std::function<std::string(const TemporaryFolder&)>;

// `body` computes y; loss = mean(y).
Save text(const std::string& initializers, const std::string& body, int opset = 18, const std::string& inputs = "float[N,2] x") {
  return [=](const TemporaryFolder& folder) {
    return save_text(folder.file("m.onnx"), "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\ncase (" + inputs +
                                                ") => (float loss) <" + initializers + "> {\n" + body +
                                                "\nloss = ReduceMean <keepdims = 0> (y)\n}");
  };
}

ModelBuilder product(const std::string& producer = "") {
  ModelBuilder m;
  m.proto.set_producer_name(producer);
  m.input("x", {"N", "2"}).output("loss", {});
  return m;
}

std::string finish(ModelBuilder& m, const std::string& y, const TemporaryFolder& folder) {
  m.add("ReduceMean", {y}, "loss", {{"keepdims", 0}});
  return m.save(folder.file("m.onnx"));
}

void note(onnx::ModelProto& model, const std::string& name, const std::string& key, const std::string& value) {
  onnx::ValueInfoProto& info = *model.mutable_graph()->add_value_info();
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  auto& entry = *info.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::vector<ImporterRow> form_rows() {
  return {
      {.topic = "an initializer that is also an input",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product();
             m.proto.set_ir_version(3);
             m.input("w", {"2"});
             m.weight("w", {2}, {1, 2});
             m.node("Mul", {"x", "w"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"w"},
       .loss = 4},
      {.topic = "parameters as inputs without values",
       .save = text("", "y = Mul (x, w)", 18, "float[N,2] x, float[2] w"),
       .error = "no parameter of the model leads to the loss: there is nothing to train; name some with --train"},
      {.topic = "weights as Constant nodes",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product();
             m.constant("w", {2, 32}, std::vector<float>(64, 1));
             m.node("MatMul", {"x", "w"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"w"},
       .loss = 5},
      {.topic = "weights computed by nodes: ConstantOfShape",
       .save = text("int64[1] s = {2}, float[2] w = {1, 2}",
                    "c = ConstantOfShape <value = float[1] {3.0}> (s) xc = Mul (x, c) y = Mul (xc, w)"),
       .trained = {"w"},
       .loss = 12},
      {.topic = "weights computed by nodes: views of a root",
       .save = text("float[2,2] w = {1, 2, 3, 4}", "t = Transpose <perm = [1, 0]> (w) i = Identity (t) y = MatMul (x, i)"),
       .trained = {"w"},
       .loss = 13},
  };
}

std::vector<ImporterRow> name_rows() {
  return {
      {.topic = "folded transposes: the name of the module that the node tells",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product("pytorch");
             m.weight("onnx::MatMul_7", {2, 2}, {1, 2, 3, 4});
             m.node("MatMul", {"x", "onnx::MatMul_7"}, {"y"}, "/net/fc/MatMul");
             return finish(m, "y", folder);
           },
       .trained = {"net.fc.weight"},
       .loss = 13.5},
      {.topic = "folded transposes: the name that folded from tells",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product("pytorch");
             m.weight("val_3", {2, 2}, {1, 2, 3, 4});
             note(m.proto, "val_3", "pkg.onnxscript.optimizer.folded_from", "['net.fc.weight']");
             m.node("MatMul", {"x", "val_3"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"net.fc.weight"},
       .loss = 13.5},
      {.topic = "names are bytes",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product();
             m.weight("{\"a\": \"0/w:1\"}\t\xc3\xa9", {2}, {1, 2});
             m.node("Mul", {"x", "{\"a\": \"0/w:1\"}\t\xc3\xa9"}, {"y"}).clear_name();
             return finish(m, "y", folder);
           },
       .trained = {"{\"a\": \"0/w:1\"}\t\xc3\xa9"},
       .loss = 4},
  };
}

std::vector<ImporterRow> tie_rows() {
  return {
      {.topic = "tied weights: one initializer, two readers",
       .save = text("float[2] w = {1, 2}", "xw = Mul (x, w) y = Mul (xw, w)"),
       .trained = {"w"},
       .loss = 7},
      {.topic = "tied weights: a table and its transposed copy",
       // Row 1 of the table, then its scores against all rows: {3, 4} · {{1, 3}, {2, 4}} = {11, 25}, each times x.
       .save = text("float[2,2] table = {1, 2, 3, 4}, float[2,2] head = {1, 3, 2, 4}, int64[1] one = {1}",
                    "e = Gather (table, one) scores = MatMul (e, head) y = Mul (x, scores)"),
       .trained = {"table"},
       .loss = 48.5,
       .report = {"tied: 'head' is the transpose of 'table'"}},
      {.topic = "falsely tied small tensors",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product("pytorch");
             m.weight("norm.weight", {2}, {1, 2});
             m.node("Mul", {"x", "norm.weight"}, {"a"});
             m.node("Identity", {"norm.weight"}, {"other.weight"});
             m.node("Mul", {"a", "other.weight"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"norm.weight", "other.weight"},
       .loss = 7,
       .report = {"split: 'other.weight'"}},
  };
}

std::vector<ImporterRow> role_rows() {
  return {
      {.topic = "roles: masks and integers are constants",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product();
             m.weight("w", {2}, {1, 2});
             const float low = -std::numeric_limits<float>::infinity();
             m.weight("mask", {2}, {low, low});
             m.ints("axes", {1}, {0});
             m.node("Mul", {"x", "w"}, {"xw"});
             m.node("Max", {"xw", "mask"}, {"masked"});
             m.node("Unsqueeze", {"masked", "axes"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"w"},
       .loss = 4},
      {.topic = "roles: what the exporter calls a buffer",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product("pytorch");
             m.weight("w", {2}, {1, 2});
             m.weight("table", {2}, {2, 2});
             note(m.proto, "w", "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
             note(m.proto, "table", "pkg.torch.export.graph_signature.InputSpec.kind", "BUFFER");
             m.node("Mul", {"x", "w"}, {"xw"});
             m.node("Mul", {"xw", "table"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"w"},
       .loss = 8},
      {.topic = "roles: integers cannot be trained",
       .save = text("float[2] w = {1, 2}, int64[1] axes = {0}", "xw = Mul (x, w) y = Unsqueeze (xw, axes)"),
       .error = "--train matches 'axes', which holds int64 values; only floating-point tensors can be trained",
       .options = [](ImportOptions& options) { options.train = {"axes"}; }},
      {.topic = "stop gradient: what only an integer tells apart is not trained",
       .save = text("float[2] w = {1, 2}, float[2] v = {1, 1}",
                    "xw = Mul (x, w) xv = Mul (x, v) i = Cast <to = 6> (xv) f = Cast <to = 1> (i) y = Add (xw, f)"),
       .trained = {"w"},
       .loss = 6.5},
      {.topic = "exported in evaluation mode",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product("pytorch");
             m.weight("w", {2}, {1, 2});
             m.node("Mul", {"x", "w"}, {"y"});
             return finish(m, "y", folder);
           },
       .trained = {"w"},
       .loss = 4,
       .report = {"the file holds no Dropout"}},
  };
}

}  // namespace

std::vector<ImporterRow> parameter_rows() {
  std::vector<ImporterRow> rows = form_rows();
  for (const auto& more : {name_rows(), tie_rows(), role_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace zeroplan
