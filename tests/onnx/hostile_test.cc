// Models that must be refused: versions, paths, sizes, recursion, nesting, damaged bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "graph/onnx/importer.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ImportOptions two_samples() {
  ImportOptions options;
  options.samples = 2;
  return options;
}

std::string refusal(const std::string& path) {
  try {
    import_model(path, two_samples());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Versions, TheUntouchedModelLoads) {
  TemporaryFolder folder;
  EXPECT_EQ(refusal(small_regression().save(folder.file("m.onnx"))), "");
}

// Opening a pipe that nobody writes to would wait for ever.
TEST(Files, APipeIsRefusedAtOnce) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.file("m.onnx")).c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder.file("m.onnx")), HasSubstr("not a regular file"));
}

TEST(Versions, FutureAndMissingOnesAreRefused) {
  TemporaryFolder folder;
  const auto with = [&](auto change) {
    ModelBuilder m = small_regression();
    change(m.proto);
    return refusal(m.save(folder.file("m.onnx")));
  };
  EXPECT_THAT(with([](auto& p) { p.mutable_opset_import(0)->set_version(9999); }), HasSubstr("opset 9999"));
  EXPECT_THAT(with([](auto& p) { p.mutable_opset_import(0)->set_version(26); }), HasSubstr("opset 26"));
  EXPECT_THAT(with([](auto& p) { p.set_ir_version(9999); }), AllOf(HasSubstr("IR version 9999"), HasSubstr("export it with one of them")));
  EXPECT_THAT(with([](auto& p) { p.mutable_opset_import(0)->set_version(0); }), HasSubstr("opset 0"));
  EXPECT_THAT(with([](auto& p) { p.clear_opset_import(); }), HasSubstr("states no opset"));
  EXPECT_THAT(with([](auto& p) { p.clear_ir_version(); }), HasSubstr("no IR version"));
}

class ExternalLocation : public testing::Test {
 protected:
  ExternalLocation() {
    std::filesystem::create_directories(folder.file("model"));
    write_bytes(folder.file("outside.bin"), std::string(24, '\1'));
    write_bytes(folder.file("model/inside.bin"), std::string(24, '\1'));
  }

  std::string path_with(const std::string& location, const std::string& offset = "0", const std::string& length = "24") {
    ModelBuilder m = small_regression();
    onnx::TensorProto& w = *m.proto.mutable_graph()->mutable_initializer(0);
    w.clear_raw_data();
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const char* key, const std::string& value) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", location);
    if (!offset.empty()) add("offset", offset);
    if (!length.empty()) add("length", length);
    return m.save(folder.file("model/m.onnx"));
  }

  TemporaryFolder folder;
};

TEST_F(ExternalLocation, AFileInTheFolderLoads) {
  EXPECT_EQ(refusal(path_with("inside.bin")), "");
  EXPECT_EQ(refusal(path_with("inside.bin", "", "")), "");
}

TEST_F(ExternalLocation, EverythingElseIsRefusedByName) {
  const std::filesystem::path model = folder.file("model");
  std::filesystem::create_symlink("inside.bin", model / "link_inside.bin");
  std::filesystem::create_symlink(folder.file("outside.bin"), model / "link_outside.bin");
  std::filesystem::create_directory_symlink(folder.path(), model / "link_folder");
  write_bytes(folder.file("model/shared.bin"), std::string(24, '\1'));
  std::filesystem::create_hard_link(model / "shared.bin", model / "hard.bin");
  for (const std::string location :
       {"../outside.bin", "x/../inside.bin", "link_inside.bin", "link_outside.bin", "link_folder/outside.bin", "hard.bin", "", ".",
        "missing.bin", "*/_ORT_MEM_ADDR_/*", "C:inside.bin", "..\\outside.bin", "inside.bin/"})
    EXPECT_THAT(refusal(path_with(location)), HasSubstr("'w'")) << location;
  EXPECT_THAT(refusal(path_with(folder.file("outside.bin"))), HasSubstr("'w'"));
}

TEST_F(ExternalLocation, RangesAreChecked) {
  for (const std::string offset : {"-1", "1", "99999999999999999999", "9223372036854775807", " 0", "+0", "0x0", "1e0"})
    EXPECT_THAT(refusal(path_with("inside.bin", offset)), HasSubstr("'w'")) << offset;
  for (const std::string length : {"-1", "23", "25", "99999999999999999999"})
    EXPECT_THAT(refusal(path_with("inside.bin", "0", length)), HasSubstr("'w'")) << length;
}

TEST_F(ExternalLocation, AnExportRefusesThemToo) {
  const ImportedModel model = import_model(path_with("inside.bin"), two_samples());
  const std::vector<Parameter> frozen;
  const std::string hostile = path_with("../outside.bin");
  EXPECT_THROW(export_model(hostile, folder.file("out.onnx"), frozen, [](const TakeParameter&) {}), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.onnx")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.onnx.data")));
}

void add_call(onnx::FunctionProto& function, const std::string& callee) {
  auto& node = *function.add_node();
  node.set_domain("local");
  node.set_op_type(callee);
  node.add_input("a");
  node.add_output("b");
}

onnx::FunctionProto& add_function(onnx::ModelProto& model, const std::string& name) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name(name);
  function.add_input("a");
  function.add_output("b");
  auto& import = *function.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  return function;
}

ModelBuilder calling(const std::string& function) {
  ModelBuilder m = small_regression();
  auto& import = *m.proto.add_opset_import();
  import.set_domain("local");
  import.set_version(1);
  m.proto.mutable_graph()->mutable_node(1)->set_output(0, "before");
  onnx::NodeProto call;
  call.set_domain("local");
  call.set_op_type(function);
  call.set_name("call");
  call.add_input("before");
  call.add_output("y");
  auto* nodes = m.proto.mutable_graph()->mutable_node();
  nodes->Add()->CopyFrom(call);
  for (int i = nodes->size() - 1; i > 2; --i) nodes->SwapElements(i, i - 1);
  return m;
}

TEST(Functions, ASoundOneIsInlined) {
  TemporaryFolder folder;
  ModelBuilder m = calling("f");
  onnx::FunctionProto& f = add_function(m.proto, "f");
  f.add_opset_import()->set_version(18);
  auto& node = *f.add_node();
  node.set_op_type("Relu");
  node.add_input("a");
  node.add_output("b");
  EXPECT_EQ(refusal(m.save(folder.file("m.onnx"))), "");
}

TEST(Functions, RecursionIsRefused) {
  TemporaryFolder folder;
  ModelBuilder self = calling("f");
  add_call(add_function(self.proto, "f"), "f");
  EXPECT_THAT(refusal(self.save(folder.file("m.onnx"))), HasSubstr("calls itself"));

  ModelBuilder through_if = calling("a");
  auto& choice = *add_function(through_if.proto, "a").add_node();
  choice.set_op_type("If");
  choice.add_output("b");
  auto& branch = *choice.add_attribute();
  branch.set_name("then_branch");
  branch.set_type(onnx::AttributeProto::GRAPH);
  onnx::FunctionProto holder;
  add_call(holder, "b");
  *branch.mutable_g()->add_node() = holder.node(0);
  add_call(add_function(through_if.proto, "b"), "a");
  EXPECT_THAT(refusal(through_if.save(folder.file("m.onnx"))), HasSubstr("calls itself"));
}

TEST(Functions, ExpansionIsCounted) {
  TemporaryFolder folder;
  ModelBuilder m = calling("f0");
  for (int i = 0; i < 40; ++i) {
    onnx::FunctionProto& f = add_function(m.proto, "f" + std::to_string(i));
    for (int call = 0; call < 2; ++call) add_call(f, "f" + std::to_string(i + 1));
  }
  add_function(m.proto, "f40");
  EXPECT_THAT(refusal(m.save(folder.file("m.onnx"))), HasSubstr("expand"));
}

// Wraps bytes as field `number` of a message.
std::string field(int number, const std::string& bytes) {
  std::string out;
  const auto varint = [&](uint64_t value) {
    for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
    out.push_back(static_cast<char>(value));
  };
  varint(static_cast<uint64_t>(number) << 3 | 2);
  varint(bytes.size());
  return out + bytes;
}

TEST(Nesting, DeepGraphsAreRefused) {
  TemporaryFolder folder;
  for (int depth : {33, 2000}) {
    std::string graph;
    for (int i = 0; i < depth; ++i) graph = field(1, field(5, field(6, graph)));  // graph.node.attribute.g
    write_bytes(folder.file("m.onnx"), small_regression().bytes() + field(25, field(7, field(5, field(6, graph)))));
    EXPECT_THAT(refusal(folder.file("m.onnx")), HasSubstr("nest deeper")) << depth;
  }
  // Prefixes alone: 100,000 messages that each claim to hold the rest.
  std::string prefixes;
  for (int i = 0; i < 100000; ++i) prefixes += std::string("\x3a\x7f", 2);
  write_bytes(folder.file("m.onnx"), prefixes);
  EXPECT_NE(refusal(folder.file("m.onnx")), "");
}

TEST(Sizes, DimsThatOverflowOrDoNotFitTheirDataAreRefused) {
  TemporaryFolder folder;
  const auto with_dims = [&](std::vector<int64_t> dims, const std::string& data) {
    ModelBuilder m = small_regression();
    onnx::TensorProto& extra = m.weight("extra", std::move(dims), {});
    extra.set_raw_data(data);
    return refusal(m.save(folder.file("m.onnx")));
  };
  const std::string eight(8, '\0');
  const int64_t big = int64_t{1} << 32;
  EXPECT_THAT(with_dims({big, big, 16}, eight), HasSubstr("'extra'"));
  EXPECT_THAT(with_dims({-1}, eight), HasSubstr("'extra'"));
  EXPECT_THAT(with_dims({(int64_t{1} << 62) + 2}, eight), HasSubstr("'extra'"));
  EXPECT_THAT(with_dims({0, int64_t{1} << 40}, eight), HasSubstr("'extra'"));
  EXPECT_THAT(with_dims({3}, eight), HasSubstr("'extra'"));
  EXPECT_THAT(with_dims({1, 1, 1, 1, 1, 1, 1, 1, 2}, eight), HasSubstr("'extra'"));
  EXPECT_EQ(with_dims({0, int64_t{1} << 40}, ""), "");
  EXPECT_EQ(with_dims({2}, eight), "");
}

// Each byte (every `stride`-th) in turn set to 0, to 255, and with its lowest bit changed.
void damage_bytes(const std::string& sound, const std::string& path, size_t stride, int& loaded, int& refused) {
  for (size_t i = 0; i < sound.size(); i += stride)
    for (int change = 0; change < 3; ++change) {
      std::string bytes = sound;
      bytes[i] = change == 0 ? '\0' : change == 1 ? '\xff' : static_cast<char>(bytes[i] ^ 1);
      write_bytes(path, bytes);
      try {
        import_model(path, two_samples());
        ++loaded;
      } catch (const Error&) {
        ++refused;
      }
    }
}

TEST(DamagedBytes, EveryByteLoadsOrIsRefused) {
  TemporaryFolder folder;
  ModelBuilder m = small_regression(21);
  m.proto.mutable_graph()->set_doc_string("a model of about a kilobyte");
  ModelBuilder::fill(m.weight("unused", {16, 8}, {}), {}, std::vector<float>(128, 0.25f));
  int loaded = 0, refused = 0;
  damage_bytes(m.bytes(), folder.file("m.onnx"), 1, loaded, refused);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 100);
}

// Through the version converter as well.
TEST(DamagedBytes, OlderOpsetsToo) {
  TemporaryFolder folder;
  int loaded = 0, refused = 0;
  damage_bytes(small_regression(13).bytes(), folder.file("m.onnx"), 3, loaded, refused);
  EXPECT_GT(loaded, 10);
  EXPECT_GT(refused, 10);
}

TEST(DamagedBytes, TruncationIsRefused) {
  TemporaryFolder folder;
  const std::string sound = small_regression().bytes();
  for (size_t size = 0; size < sound.size(); size += 11) {
    write_bytes(folder.file("m.onnx"), sound.substr(0, size));
    EXPECT_THROW(import_model(folder.file("m.onnx"), two_samples()), Error) << size;
  }
}

}  // namespace
}  // namespace zeroplan
