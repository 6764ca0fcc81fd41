// More than 2 GB in one file, and offsets beyond 4 GiB: nothing of it passes through protobuf, and holes stay holes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/saved_tensor.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kLarge = 2'300'000'000, kMarked = 2'100'000'000;
constexpr int64_t kSmallDisk = int64_t{64} << 20;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string delimited(int field, int64_t bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(static_cast<uint64_t>(bytes));
}

void write_at(const std::string& path, int64_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file << bytes;
  ASSERT_TRUE(file.good());
}

std::string read_at(const std::string& path, int64_t at, int64_t count) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(count, '\0');
  file.seekg(at);
  file.read(bytes.data(), count);
  EXPECT_EQ(file.gcount(), count);
  return bytes;
}

int64_t disk_bytes(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_blocks * 512;
}

std::string floats(const std::vector<float>& values) { return {reinterpret_cast<const char*>(values.data()), values.size() * 4}; }

// x[N,400] · w · v with `large` between the two in the file: int8, unread, zeros but for "mark" at kMarked. Returns the offset of its
// contents.
int64_t save_one_file(const std::string& path) {
  ModelBuilder m;
  m.input("x", {"N", "400"}).output("loss", {});
  m.weight("w", {400}, std::vector<float>(400, 2));
  m.node("Mul", {"x", "w"}, {"xw"});
  m.node("Mul", {"xw", "v"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  onnx::TensorProto v, large;
  ModelBuilder::fill(v, {400}, std::vector<float>(400, 3));
  v.set_name("v");
  large.set_name("large");
  large.set_data_type(onnx::TensorProto::INT8);
  large.add_dims(kLarge);
  // In the order of field numbers, as protobuf writes it.
  onnx::GraphProto ends;
  ends.mutable_input()->Swap(m.proto.mutable_graph()->mutable_input());
  ends.mutable_output()->Swap(m.proto.mutable_graph()->mutable_output());
  onnx::ModelProto opsets;
  opsets.mutable_opset_import()->Swap(m.proto.mutable_opset_import());
  const std::string graph = m.proto.graph().SerializeAsString(), last = v.SerializeAsString();
  const std::string head = large.SerializeAsString() + delimited(9, kLarge);  // raw_data
  const int64_t tensor = static_cast<int64_t>(head.size()) + kLarge;
  const std::string before = graph + delimited(5, tensor) + head;
  const std::string after = delimited(5, static_cast<int64_t>(last.size())) + last + ends.SerializeAsString();
  m.proto.clear_graph();
  const std::string start =
      m.proto.SerializeAsString() + delimited(7, static_cast<int64_t>(before.size() + after.size()) + kLarge) + before;
  write_bytes(path, start);
  const auto contents = static_cast<int64_t>(start.size());
  std::filesystem::resize_file(path, contents + kLarge);
  write_at(path, contents + kMarked, "mark");
  write_at(path, contents + kLarge, after + opsets.SerializeAsString());
  return contents;
}

GiveParameters give(const std::vector<float>& w, const std::vector<float>& v) {
  return [w, v](const TakeParameter& take) {
    take(1, std::as_bytes(std::span(v)));
    take(0, std::as_bytes(std::span(w)));
  };
}

TEST(LargeExport, OneFileAboveTwoGigabytes) {
  TemporaryFolder folder;
  const std::string path = folder.file("m.onnx"), out = folder.file("out.onnx");
  const int64_t contents = save_one_file(path);
  const ImportedModel model = import_model(path, samples(2));
  ASSERT_EQ(model.graph.parameters.size(), 2u);
  EXPECT_EQ(model.graph.parameters[1].name, "v");
  EXPECT_GT(model.graph.parameters[1].source.offset, kLarge);
  const HostTensor x = HostTensor::of(DType::f32, {2, 400}, std::vector<float>(800, 0.5f));
  EXPECT_NEAR(evaluate_loss(model, {{"x", x}}), 3, 1e-6);

  const std::vector<float> w(400, 5), v(400, 7);
  const ExportedFiles files = export_model(path, out, model.graph.parameters, give(w, v));
  EXPECT_THAT(files.paths, ElementsAre(out));
  EXPECT_THAT(files.report, Contains(HasSubstr("programs that read models by protobuf take at most 2147483647")));
  EXPECT_LT(disk_bytes(out), kSmallDisk);
  // Byte by byte the original, but for the two weights.
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(out)), size);
  std::string start = read_at(path, 0, contents), end = read_at(path, contents + kLarge, size - contents - kLarge);
  start.replace(start.find(floats(std::vector<float>(400, 2))), 1600, floats(w));
  end.replace(end.find(floats(std::vector<float>(400, 3))), 1600, floats(v));
  EXPECT_EQ(read_at(out, 0, contents), start);
  EXPECT_EQ(read_at(out, contents + kLarge, size - contents - kLarge), end);
  EXPECT_EQ(read_at(out, contents + kMarked - 2, 8), std::string("\0\0mark\0\0", 8));
  EXPECT_NEAR(evaluate_loss(import_model(out, samples(2)), {{"x", x}}), 17.5, 1e-5);
}

TEST(LargeExport, ExternalDataBeyondFourGibibytes) {
  TemporaryFolder folder;
  const int64_t far = (int64_t{1} << 32) + 4096;
  ModelBuilder m;
  m.input("x", {"N", "3"}).output("loss", {});
  int64_t offset = 0;
  write_bytes(folder.file("w.bin"), floats({1, 2, 3}));
  std::filesystem::resize_file(folder.file("w.bin"), far + 12);
  write_at(folder.file("w.bin"), far, floats({4, 5, 6}));
  for (const std::string name : {"w", "v"}) {
    onnx::TensorProto& tensor = m.weight(name, {3}, {});
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : std::map<std::string, std::string>{{"location", "w.bin"}, {"offset", std::to_string(offset)}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    offset = far;
  }
  m.node("Mul", {"x", "w"}, {"xw"});
  m.node("Mul", {"xw", "v"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  const std::string path = m.save(folder.file("m.onnx"));
  std::filesystem::create_directory(folder.file("out"));
  const ImportedModel model = import_model(path, samples(2));
  const ExportedFiles files = export_model(path, folder.file("out/m.onnx"), model.graph.parameters, give({10, 20, 30}, {40, 50, 60}));
  EXPECT_THAT(files.report, IsEmpty());
  EXPECT_EQ(file_bytes(folder.file("out/m.onnx")), file_bytes(path));
  const std::string data = folder.file("out/w.bin");
  EXPECT_EQ(std::filesystem::file_size(data), static_cast<uint64_t>(far + 12));
  EXPECT_LT(disk_bytes(data), kSmallDisk);
  EXPECT_EQ(read_at(data, 0, 12), floats({10, 20, 30}));
  EXPECT_EQ(read_at(data, far, 12), floats({40, 50, 60}));
}

}  // namespace
}  // namespace zeroplan
