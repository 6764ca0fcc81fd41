// Versions and forms of files, external data, element types and sizes.
#include "base/temporary_folder.h"
#include "tests/onnx/importer_rows.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/text_model.h"

namespace zeroplan {
namespace {

// loss = mean(x · w) with w = {1, 2}: 4.
ModelBuilder product(int opset = 18) {
  ModelBuilder m(opset);
  m.input("x", {"N", "2"}).output("loss", {});
  m.weight("w", {2}, {1, 2});
  m.node("Mul", {"x", "w"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  return m;
}

using Change = std::function<void(onnx::ModelProto&)>;

std::function<std::string(const TemporaryFolder&)> changed(const Change& change, int opset = 18) {
  return [=](const TemporaryFolder& folder) {
    ModelBuilder m = product(opset);
    change(m.proto);
    return m.save(folder.file("m.onnx"));
  };
}

// w lies in w.bin, link.bin points to it; the entries say where w is said to be.
std::function<std::string(const TemporaryFolder&)> external(std::vector<std::pair<std::string, std::string>> entries) {
  return [=](const TemporaryFolder& folder) {
    const float values[] = {9, 1, 2};
    write_bytes(folder.file("w.bin"), std::string(reinterpret_cast<const char*>(values), sizeof values));
    std::filesystem::create_symlink("w.bin", folder.file("link.bin"));
    std::filesystem::create_directory(folder.file("hard"));
    write_bytes(folder.file("hard/a.bin"), std::string(12, '\0'));
    std::filesystem::create_hard_link(folder.file("hard/a.bin"), folder.file("hard/b.bin"));
    ModelBuilder m = product();
    onnx::TensorProto& w = *m.proto.mutable_graph()->mutable_initializer(0);
    w.clear_raw_data();
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    return m.save(folder.file("m.onnx"));
  };
}

std::string refused(const std::string& location, const std::string& why) {
  return "initializer 'w': external data location '" + location + "' is refused: " + why + "; it must name a file below the model's folder";
}

onnx::TensorProto& first_tensor(onnx::ModelProto& model) { return *model.mutable_graph()->mutable_initializer(0); }

// `count` numbers of a short type as `bytes` numbers of int32_data.
void add_short_numbers(onnx::ModelProto& model, int type, int64_t count, int bytes) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("of type " + std::to_string(type));
  tensor.set_data_type(type);
  tensor.add_dims(count);
  for (int i = 0; i < bytes; ++i) tensor.add_int32_data(0x10 + i);
}

std::vector<ImporterRow> version_rows() {
  return {
      {.topic = "protobuf: fields that ONNX has got since 1.12, and ones that nobody knows",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product(21);
             onnx::NodeProto& node = *m.proto.mutable_graph()->mutable_node(0);
             auto& note = *node.add_metadata_props();
             note.set_key("namespace");
             note.set_value("a");
             node.set_overload("");
             write_bytes(folder.file("m.onnx"), m.bytes() + std::string("\xba\x3e\x02hi", 5) + std::string("\xb8\x3e\x07", 3));
             return folder.file("m.onnx");
           },
       .trained = {"w"},
       .loss = 4},
      {.topic = "IR versions above 8", .save = changed([](auto& m) { m.set_ir_version(10); }, 21), .trained = {"w"}, .loss = 4},
      {.topic = "IR version that is not there yet",
       .save = changed([](auto& m) { m.set_ir_version(99); }),
       .error = "the model has IR version 99; 3 to 14 are supported"},
      {.topic = "opset imports: ai.onnx, and domains that nothing uses",
       .save = changed([](auto& m) {
         m.mutable_opset_import(0)->set_domain("ai.onnx");
         for (const char* domain : {"com.microsoft.nchwc", "org.pytorch.aten"}) {
           m.add_opset_import()->set_domain(domain);
           m.mutable_opset_import(m.opset_import_size() - 1)->set_version(1);
         }
       }),
       .trained = {"w"},
       .loss = 4},
      {.topic = "opset imports: none of the default domain, which nodes are of",
       .save = changed([](auto& m) { m.mutable_opset_import(0)->set_domain("com.microsoft"); }),
       .error = "the model states no opset of the default domain, which node 'node_y' (Mul) is of; export it with an opset from 1 to 25"},
  };
}

std::vector<ImporterRow> external_rows() {
  return {
      {.topic = "external data: keys that nobody knows, no length, an odd offset",
       .save = external({{"location", "w.bin"}, {"offset", "4"}, {"basepath", "/"}, {"note", "x"}}),
       .trained = {"w"},
       .loss = 4},
      {.topic = "external data: a length that is not that of the shape",
       .save = external({{"location", "w.bin"}, {"offset", "4"}, {"length", "4"}}),
       .error = "initializer 'w': its external data states 4 bytes but shape [2] needs 8"},
      {.topic = "external data: beyond the end",
       .save = external({{"location", "w.bin"}, {"offset", "5"}}),
       .error = "initializer 'w': 8 bytes at offset 5 lie outside 'w.bin' of 12 bytes"},
      {.topic = "external data: an offset that overflows",
       .save = external({{"location", "w.bin"}, {"offset", "9223372036854775808"}}),
       .error = "initializer 'w': external offset '9223372036854775808' is not a decimal number that fits 63 bits; export the model again"},
      {.topic = "path attacks: out of the folder",
       .save = external({{"location", "../w.bin"}}),
       .error = refused("../w.bin", "it leaves the folder")},
      {.topic = "path attacks: absolute",
       .save = external({{"location", "/etc/passwd"}}),
       .error = refused("/etc/passwd", "it is absolute")},
      {.topic = "path attacks: hard links",
       .save = external({{"location", "hard/b.bin"}}),
       .error = "external data file 'hard/b.bin' is refused: it has more than one hard link; copy it"},
      {.topic = "symlinks",
       .save = external({{"location", "link.bin"}}),
       .error = "initializer 'w': external data file 'link.bin' is refused: a link, or not a folder, on the way"},
      {.topic = "memory addresses of a runtime",
       .save = external({{"location", "*/_ORT_MEM_ADDR_/*"}, {"offset", "0"}}),
       .error = refused("*/_ORT_MEM_ADDR_/*", "it is a runtime's memory address")},
  };
}

std::vector<ImporterRow> short_type_rows() {
  return {
      {.topic = "typed data: types that nothing here computes in, of a tensor that nothing needs",
       .save = changed([](auto& m) {
         add_short_numbers(m, 17, 3, 3);  // float8e4m3fn
         add_short_numbers(m, 23, 3, 2);  // float4e2m1, two to a byte
         add_short_numbers(m, 25, 5, 2);  // uint2, four to a byte
       }),
       .trained = {"w"},
       .loss = 4},
      {.topic = "typed data: types that nothing here computes in",
       .save = changed([](auto& m) {
         add_short_numbers(m, 17, 2, 2);
         m.mutable_graph()->mutable_node(0)->set_input(1, "of type 17");
       }),
       .error = "tensor 'of type 17' is float8e4m3fn, which is not supported here"},
      {.topic = "typed data: a number too few",
       .save = changed([](auto& m) { add_short_numbers(m, 17, 3, 2); }),
       .error = "tensor 'of type 17' of type float8e4m3fn and shape [3] needs 3 bytes but holds 2; the file is damaged"},
  };
}

std::vector<ImporterRow> type_rows() {
  return {
      {.topic = "typed data: float16 as numbers of int32_data",
       .save = changed([](auto& m) {
         auto& w = first_tensor(m);
         w.clear_raw_data();
         w.set_data_type(onnx::TensorProto::FLOAT16);
         w.add_int32_data(0x3c00);
         w.add_int32_data(0x4000);
       }),
       .trained = {"w"},
       .loss = 4,
       .report = {"1 parameter is stored as float16"}},
      {.topic = "typed data: float_data",
       .save = changed([](auto& m) {
         auto& w = first_tensor(m);
         w.clear_raw_data();
         w.add_float_data(1);
         w.add_float_data(2);
       }),
       .trained = {"w"},
       .loss = 4},
      {.topic = "typed data: as raw data too",
       .save = changed([](auto& m) { first_tensor(m).add_float_data(1); }),
       .error = "the data of one tensor comes in several pieces"},
      {.topic = "raw data: bools that are neither 0 nor 1",
       .save =
           [](const TemporaryFolder& folder) {
             ModelBuilder m = product();
             onnx::TensorProto& mask = *m.proto.mutable_graph()->add_initializer();
             mask.set_name("mask");
             mask.set_data_type(onnx::TensorProto::BOOL);
             mask.add_dims(2);
             mask.set_raw_data(std::string("\x02\x00", 2));
             m.proto.mutable_graph()->mutable_node(1)->set_input(0, "masked");
             m.node("Where", {"mask", "y", "x"}, {"masked"});
             m.proto.mutable_graph()->mutable_node()->SwapElements(1, 2);
             return m.save(folder.file("m.onnx"));
           },
       .trained = {"w"},
       .loss = 2.5},  // {{1, 2}, {3, 4}}
      {.topic = "sparse initializers",
       .save = changed([](auto& m) {
         auto& sparse = *m.mutable_graph()->add_sparse_initializer();
         sparse.mutable_values()->set_name("s");
         sparse.add_dims(4);
       }),
       .error = "initializer 's' is sparse, which is not supported; store it densely"},
  };
}

std::vector<ImporterRow> size_rows() {
  return {
      {.topic = "size bombs: ConstantOfShape of 8 TiB",
       .save =
           [](const TemporaryFolder& folder) {
             return save_text(folder.file("m.onnx"), R"(<ir_version: 8, opset_import: ["" : 18]>
               case (float[N,2] x) => (float loss) <float[2] w = {1, 2}, int64[2] s = {1048576, 2097152}> {
                 y = Mul (x, w) bomb = ConstantOfShape (s) z = Add (y, bomb) loss = ReduceMean <keepdims = 0> (z) })");
           },
       .error = "bomb"},
      {.topic = "size bombs: more elements than can be counted",
       .save = changed([](auto& m) {
         auto& t = *m.mutable_graph()->add_initializer();
         t.set_name("t");
         t.set_data_type(onnx::TensorProto::FLOAT);
         for (int i = 0; i < 3; ++i) t.add_dims(int64_t{1} << 40);
       }),
       .error = "tensor 't' of shape [1099511627776,1099511627776,1099511627776] has more than 1099511627776 elements, the most that is "
                "supported; the file is damaged"},
  };
}

}  // namespace

std::vector<ImporterRow> file_rows() {
  std::vector<ImporterRow> rows = version_rows();
  for (const auto& more : {external_rows(), short_type_rows(), type_rows(), size_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace zeroplan
