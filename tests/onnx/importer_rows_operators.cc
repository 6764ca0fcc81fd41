// Operators whose meaning changed, functions, control flow, shapes.
#include "base/temporary_folder.h"
#include "tests/onnx/importer_rows.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

using Save = std::function<std::string(const TemporaryFolder&)>;

// `body` computes loss.
Save text(int opset, const std::string& initializers, const std::string& body, const std::string& inputs = "float[N,2] x",
          const std::string& outputs = "float loss") {
  return [=](const TemporaryFolder& folder) {
    return save_text(folder.file("m.onnx"), "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]>\ncase (" + inputs +
                                                ") => (" + outputs + ") <" + initializers + "> {\n" + body + "\n}");
  };
}

constexpr char kMean[] = " loss = ReduceMean <keepdims = 0> (y)";

std::vector<ImporterRow> meaning_rows() {
  return {
      {.topic = "operators: Softmax of opset 11 joins the axes from 1 on",
       // Rows {1, 4} and {3, 8}, softmax over each: mean of {1, 4} · {0.04742587, 0.95257413} and {3, 8} · {0.00669285, 0.99330715}.
       .save = text(11, "float[2] w = {1, 2}, int64[3] s = {-1, 1, 2}",
                    std::string("xw = Mul (x, w) r = Reshape (xw, s) p = Softmax <axis = 1> (r) y = Mul (r, p)") + kMean),
       .trained = {"w"},
       .loss = 2.95606},
      {.topic = "operators: Clip of opset 6 has its limits as attributes",
       .save = text(6, "float[2] w = {1, 2}", std::string("xw = Mul <broadcast = 1> (x, w) y = Clip <max = 3.0> (xw)") + kMean),
       .trained = {"w"},
       .loss = 2.5},
      {.topic = "operators: ReduceSum of opset 11 has its axes as an attribute",
       .save = text(11, "float[2] w = {1, 2}", std::string("xw = Mul (x, w) y = ReduceSum <axes = [1], keepdims = 0> (xw)") + kMean),
       .trained = {"w"},
       .loss = 8},
      {.topic = "Dropout: in evaluation mode it does nothing",
       .save =
           text(13, "float[2] w = {1, 2}, float r = {0.5}, bool t = {0}", std::string("xw = Mul (x, w) y = Dropout (xw, r, t)") + kMean),
       .trained = {"w"},
       .loss = 4},
      {.topic = "int64: negative indices count from the end",
       .save = text(13, "float[2] w = {1, 2}, int64[1] last = {-1}", std::string("c = Gather (w, last) y = Mul (x, c)") + kMean),
       .trained = {"w"},
       .loss = 5},
      {.topic = "quantised weights: DequantizeLinear of an integer initializer",
       .save = text(13, "float[2] v = {1, 1}, int8[2] q = {3, 5}, float s = {0.5}, int8 z = {1}",
                    std::string("w = DequantizeLinear (q, s, z) xv = Mul (x, v) y = Mul (xv, w)") + kMean),
       .trained = {"q", "v"},
       .loss = 4,
       .report = {"1 parameter is stored as int8 with a scale"}},
      {.topic = "quantised weights: of 4 bits they are constants",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m(21);
             m.input("x", {"N", "2"}).output("loss", {});
             m.weight("v", {2}, {1, 1});
             m.weight("s", {}, {1});
             onnx::TensorProto& q = m.weight("q", {2}, {});
             q.set_data_type(onnx::TensorProto::INT4);
             q.set_raw_data("\x21");
             m.node("DequantizeLinear", {"q", "s"}, {"w"});
             m.node("Mul", {"x", "v"}, {"xv"});
             m.node("Mul", {"xv", "w"}, {"y"});
             m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
             return m.save(folder.file("m.onnx"));
           },
       .trained = {"v"},
       .loss = 4},
      {.topic = "labels: classes on axis 1, an ignored label",
       .save = text(13, "float[2] w = {1, 2}, int64[2] t = {1, -100}",
                    "xw = Mul (x, w) loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (xw, t)"),
       .trained = {"w"},
       .loss = 0.0485874},  // log(1 + e^(1 - 4))
  };
}

std::vector<ImporterRow> norm_rows() {
  return {
      {.topic = "BatchNormalization: training mode",
       .save = text(15, "float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {5, 5}, float[2] v = {4, 4}",
                    std::string("y, nm, nv = BatchNormalization <training_mode = 1> (x, s, b, m, v)") + kMean),
       .trained = {"s", "b"},
       .loss = 0.5,
       .report = {"1 BatchNormalization uses the statistics of each micro-batch"}},
      {.topic = "BatchNormalization: evaluation mode",
       // ((x - m) / 2) · s + b without epsilon: {-2, -3; -1, -1}· … = {-2, -2, -1, 0}.
       .save = text(15, "float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {5, 5}, float[2] v = {4, 4}",
                    std::string("y = BatchNormalization <epsilon = 0.0> (x, s, b, m, v)") + kMean),
       .trained = {"s", "b"},
       .loss = -1.25,
       .report = {"1 BatchNormalization uses its running statistics"}},
      {.topic = "BatchNormalization: opset 9 trains where it has more outputs",
       .save = text(9, "float[2] s = {1, 2}, float[2] b = {0, 1}, float[2] m = {5, 5}, float[2] v = {4, 4}",
                    std::string("y, nm, nv, sm, sv = BatchNormalization (x, s, b, m, v)") + kMean),
       .trained = {"s", "b"},
       .loss = 0.5},
      {.topic = "BatchNormalization: running statistics that no tensor stores",
       .save = text(15, "float[2] s = {1, 2}, float[2] b = {0, 1}, int64[1] n = {2}, float[2] v = {4, 4}",
                    std::string("m = ConstantOfShape (n) y, nm, nv = BatchNormalization <training_mode = 1> (x, s, b, m, v)") + kMean),
       .error = "node 'y' (BatchNormalization) normalizes with the statistics of its batch, but its running mean 'm' is no tensor that the "
                "file stores as one piece, so that training cannot update it; store it as an initializer, or --eval-bn 'y'"},
  };
}

// f(a) = Squeeze(Unsqueeze(a)) with axes as attributes, in an opset of its own, where the model has another.
std::string save_function(const TemporaryFolder& folder) {
  ModelBuilder m(18);
  m.input("x", {"N", "2"}).output("loss", {});
  m.weight("w", {2}, {1, 2});
  auto& import = *m.proto.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  onnx::FunctionProto& f = *m.proto.add_functions();
  f.set_domain("local");
  f.set_name("there_and_back");
  f.add_input("a");
  f.add_output("b");
  auto& own = *f.add_opset_import();
  own.set_domain("");
  own.set_version(11);
  const auto add = [&](const char* op, const char* from, const char* to) {
    onnx::NodeProto& node = *f.add_node();
    node.set_op_type(op);
    node.add_input(from);
    node.add_output(to);
    ModelBuilder::set(node, "axes", std::vector<int64_t>{1});
  };
  add("Unsqueeze", "a", "wide");
  add("Squeeze", "wide", "b");
  m.node("Mul", {"x", "w"}, {"xw"});
  m.node("there_and_back", {"xw"}, {"y"}).set_domain("local");
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  return m.save(folder.file("m.onnx"));
}

std::vector<ImporterRow> structure_rows() {
  return {
      {.topic = "functions: bodies in an opset of their own", .save = save_function, .trained = {"w"}, .loss = 4},
      {.topic = "symbolic dims: all that are unbound, by name",
       .save = text(13, "float[2] w = {1, 2}", std::string("xw = Mul (x, w) y = Add (xw, z)") + kMean, "float[N,2] x, float[N,K] z"),
       .error = "dimension 'K' of input z is unbound; state --dim K=N"},
      {.topic = "symbolic dims: without a name they are the input's",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m;
             m.input("x", {"N", "0"}).output("loss", {});
             m.weight("w", {2}, {1, 2});
             m.node("Mul", {"x", "w"}, {"y"});
             m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
             return m.save(folder.file("m.onnx"));
           },
       .trained = {"w"},
       .loss = 4,
       .options = [](ImportOptions& options) { options.dims["x[1]"] = 2; }},
      {.topic = "shape arithmetic is computed at import",
       .save =
           text(13, "float[2] w = {1, 2}, int64 one = {1}, int64[1] axis = {0}, int64[1] rest = {-1}",
                std::string("xw = Mul (x, w) s = Shape (xw) d = Gather (s, one) d1 = Unsqueeze (d, axis) t = Concat <axis = 0> (rest, d1) "
                            "y = Reshape (xw, t)") +
                    kMean),
       .trained = {"w"},
       .loss = 4},
      {.topic = "If on a shape is its branch",
       .save = text(13, "float[2] w = {1, 2}, float[2] v = {7, 7}, int64 one = {1}, int64 two = {2}",
                    std::string("s = Shape (x) d = Gather (s, one) c = Equal (d, two)\n"
                                "y = If (c) <then_branch = a () => (float[N,2] t) { t = Mul (x, w) },"
                                "            else_branch = b () => (float[N,2] e) { e = Mul (x, v) }>\n") +
                        kMean),
       .trained = {"w"},
       .loss = 4},
      {.topic = "If on data computes both branches",
       .save = text(13, "float[2] w = {1, 2}, float[2] v = {7, 7}, float zero = {0}",
                    std::string("t = ReduceSum <keepdims = 0> (x) c = Less (t, zero)\n"
                                "y = If (c) <then_branch = a () => (float[N,2] n) { n = Mul (x, v) },"
                                "            else_branch = b () => (float[N,2] e) { e = Mul (x, w) }>\n") +
                        kMean),
       .trained = {"w", "v"},
       .loss = 4},
      {.topic = "Loop whose end depends on data",
       .save = text(13, "float[2] w = {1, 2}, int64 n = {3}, float ten = {10}",
                    std::string("xw = Mul (x, w) yes = Constant <value = bool {1}> ()\n"
                                "y = Loop (n, yes, xw) <body = b (int64 i, bool c, float[N,2] h) => (bool more, float[N,2] k) {"
                                " k = Add (h, h) t = ReduceSum <keepdims = 0> (k) more = Less (t, ten) }>\n") +
                        kMean),
       .error = "whether it goes on depends on the data of the model; it must be known when the model is compiled"},
      {.topic = "outputs: other heads, and a sequence among them",
       .save = text(13, "float[2] w = {1, 2}, float[2] v = {1, 1}",
                    std::string("y = Mul (x, w) z = Mul (x, v) list = SequenceConstruct (z, z)") + kMean, "float[N,2] x",
                    "float loss, float[N,2] z, seq(float[N,2]) list"),
       .trained = {"w"},
       .loss = 4,
       .options = [](ImportOptions& options) { options.loss = "loss"; }},
  };
}

}  // namespace

std::vector<ImporterRow> operator_rows() {
  std::vector<ImporterRow> rows = meaning_rows();
  for (const auto& more : {norm_rows(), structure_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace zeroplan
