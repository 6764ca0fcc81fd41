// Weights of gigabytes beside the model: nothing reads or keeps more of them than its part.
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "runtime/plan/dump.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/sanitized.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

struct External {
  std::string name;
  Shape shape;
  int64_t offset = 0;
};

// x[N,rows] · a · b, mean; a and b in a file of 3 GiB that is all holes but for a few numbers.
std::unique_ptr<TinyCase> large_case(const External& a, const External& b) {
  TinyModel model;
  model.input("x", DType::f32, {"N", a.shape[0]}).weight(a.name, {1}, {0}).weight(b.name, {1}, {0});
  model.node("MatMul", {"x", a.name}, {"h"}).node("MatMul", {"h", b.name}, {"y"});
  model.node("ReduceMean", {"y"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  const int64_t samples = 8;
  auto made = std::make_unique<TinyCase>(model, std::map<std::string, HostTensor>{{"x", random_tensor({samples, a.shape[0]}, 1)}});
  const TinyCase& tiny = *made;
  onnx::ModelProto proto;
  std::ifstream in(tiny.model(), std::ios::binary);
  EXPECT_TRUE(proto.ParseFromIstream(&in));
  const std::string data = tiny.file("model.onnx.data");
  std::ofstream(data, std::ios::binary) << "";
  std::filesystem::resize_file(data, 3 * kGiB);
  std::fstream file(data, std::ios::binary | std::ios::in | std::ios::out);
  float value = 1;
  for (const External& e : {a, b}) {
    for (auto& tensor : *proto.mutable_graph()->mutable_initializer()) {
      if (tensor.name() != e.name) continue;
      tensor.clear_raw_data();
      tensor.clear_dims();
      for (const int64_t dim : e.shape) tensor.add_dims(dim);
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      for (const auto& [key, text] :
           std::map<std::string, std::string>{{"location", "model.onnx.data"}, {"offset", std::to_string(e.offset)}}) {
        auto& entry = *tensor.add_external_data();
        entry.set_key(key);
        entry.set_value(text);
      }
    }
    for (const int64_t at : {int64_t{0}, elements(e.shape) - 1}) {  // the ends differ, as those of trained weights do
      file.seekp(e.offset + 4 * at);
      file.write(reinterpret_cast<const char*>(&value), 4);
      value += 0.5f;
    }
  }
  EXPECT_TRUE(file.good());
  std::ofstream(tiny.model(), std::ios::binary) << proto.SerializeAsString();
  return made;
}

// Bytes that the process has held at most since the last call of reset_peak.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  ADD_FAILURE() << "no " << key;
  return 0;
}

// Two tensors of 1.5 GiB each.
TEST(T31, ThreeGibibytesAreCompiledWithoutReadingThem) {
  const int64_t wide = 49152, narrow = 8192;
  const auto made = large_case({"a", {narrow, wide}, 0}, {"b", {wide, narrow}, 3 * kGiB / 2});
  const TinyCase& tiny = *made;
  reset_peak();
  const int64_t before = status_bytes("VmRSS");
  const Plan plan = tiny.compile(sgd_compile(4, 4));
  const int64_t grown = status_bytes("VmHWM") - before;
  if (!kSanitized) EXPECT_LT(grown, int64_t{64} << 20);
  EXPECT_EQ(plan.parameters.size(), 2u);
  EXPECT_THAT(dump_text(plan, 0), HasSubstr("[49152,8192]"));
}

// Two tensors at the ends of the file, so that a small machine holds them.
const TinyCase& two_ends() {
  static const auto tiny = large_case({"a", {2048, 2048}, 0}, {"b", {2048, 2048}, 3 * kGiB - (int64_t{16} << 20)});
  return *tiny;
}

TEST(T31, EachRankReadsItsShard) {
  const Plan plan = two_ends().compile(sgd_compile(4, 4));
  int64_t shards = 0, unit = 0;
  for (const PlanUnit& u : plan.units) {
    shards += u.shard_elements * dtype_bytes(u.dtype);
    unit = std::max(unit, u.padded_elements * dtype_bytes(u.dtype));
  }
  EXPECT_EQ(shards, int64_t{8} << 20);
  EXPECT_EQ(unit, int64_t{16} << 20);
  reset_peak();
  const int64_t before = status_bytes("VmRSS");
  const auto executor = make_executor(plan);
  const int64_t grown = status_bytes("VmHWM") - before;
  if (!kSanitized) EXPECT_LT(grown / plan.header.ranks, shards + unit);
  EXPECT_GT(grown, 0);
  const Weights held = all_weights(*executor);
  EXPECT_EQ(held.at("a").get(0), 1);
  EXPECT_EQ(held.at("b").get(elements({2048, 2048}) - 1), 2.5);
}

TEST(T31, TheExportIsAsSparseAndInTheSamePlaces) {
  const Plan plan = two_ends().compile(sgd_compile(4, 4));
  const auto executor = make_executor(plan);
  run_training(*executor, *two_ends().data(plan), nullptr, sgd_run(0.1, 1), [](const RunEvent&) {});
  std::filesystem::create_directory(two_ends().file("out"));
  const std::string path = two_ends().file("out/model.onnx"), data = two_ends().file("out/model.onnx.data");
  EXPECT_EQ(export_trained(*executor, path).paths, (std::vector<std::string>{path, data}));
  EXPECT_EQ(std::filesystem::file_size(data), static_cast<uint64_t>(3 * kGiB));
  struct stat status {};
  ASSERT_EQ(::stat(data.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, int64_t{64} << 20);
  const Weights held = all_weights(*executor), read = all_weights(*make_executor(compile(path, sgd_compile(4))));
  EXPECT_TRUE(read == held);
  EXPECT_NE(held.at("b").get(elements({2048, 2048}) - 1), 2.5);
  std::filesystem::remove_all(two_ends().file("out"));
}

}  // namespace
}  // namespace zeroplan
