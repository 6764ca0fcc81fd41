// External data comes back in the files and places that it had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <numeric>

#include "base/output_file.h"
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

namespace fs = std::filesystem;

std::string bytes_of(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// A model x[N,3] of factors 'a', 'b', …, each multiplied onto it; mean. Factors are external where they are given a place.
class Factors {
 public:
  explicit Factors(const std::string& folder) : folder_(folder) {
    fs::create_directories(folder);
    m.input("x", {"N", "3"}).output("loss", {});
  }

  // Three floats `value`, `value` + 1, `value` + 2.
  Factors& factor(float value) {
    name_ = std::string(1, next_++);
    values_ = {value, value + 1, value + 2};
    m.weight(name_, {3}, values_);
    m.node("Mul", {last_, name_}, {"y" + name_});
    last_ = "y" + name_;
    return *this;
  }

  // That of the last factor.
  Factors& at(const std::string& location, int64_t offset, std::vector<std::pair<std::string, std::string>> more = {}) {
    onnx::TensorProto& tensor = *m.proto.mutable_graph()->mutable_initializer(m.proto.graph().initializer_size() - 1);
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    more.insert(more.begin(), {{"location", location}, {"offset", std::to_string(offset)}, {"length", "12"}});
    for (const auto& [key, value] : more) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    std::string& file = files_[location];
    file.resize(std::max<size_t>(file.size(), offset + 12), '\x55');
    file.replace(offset, 12, bytes_of(values_));
    return *this;
  }

  std::string save(const std::string& name = "model.onnx") {
    m.add("ReduceMean", {last_}, "loss", {{"keepdims", 0}});
    for (const auto& [location, bytes] : files_) {
      fs::create_directories(fs::path(folder_ + "/" + location).parent_path());
      write_bytes(folder_ + "/" + location, bytes);
    }
    return m.save(folder_ + "/" + name);
  }

  ModelBuilder m;

 private:
  std::string folder_, name_, last_ = "x";
  char next_ = 'a';
  std::vector<float> values_;
  std::map<std::string, std::string> files_;
};

// Parameter i gets 100 i + 1, + 2, + 3.
std::vector<float> trained(int i) { return {100.0f * i + 1, 100.0f * i + 2, 100.0f * i + 3}; }

GiveParameters give_all(size_t count) {
  return [count](const TakeParameter& take) {
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> values = trained(static_cast<int>(i));
      take(static_cast<int>(i), std::as_bytes(std::span(values)));
    }
  };
}

// Exports with trained values; every parameter is found again by an import with just these.
ExportedFiles export_trained_to(const std::string& from, const std::string& to, const ImportOptions& options = samples(2)) {
  const ImportedModel model = import_model(from, options);
  ExportedFiles out = export_model(from, to, model.graph.parameters, give_all(model.graph.parameters.size()));
  const ImportedModel after = import_model(to, options);
  WeightFiles files(to);
  EXPECT_EQ(after.graph.parameters.size(), model.graph.parameters.size());
  for (size_t i = 0; i < after.graph.parameters.size(); ++i) {
    const Parameter& p = after.graph.parameters[i];
    EXPECT_EQ(p.name, model.graph.parameters[i].name);
    std::vector<float> values(3);
    read_weight(files, p.source, 0, 3, DType::f32, values.data());
    EXPECT_EQ(values, trained(static_cast<int>(i))) << p.name;
  }
  return out;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string entry_of(const onnx::TensorProto& tensor, const std::string& key) {
  for (const auto& entry : tensor.external_data())
    if (entry.key() == key) return entry.value();
  return "none";
}

// Two files, one of them in a folder, three tensors in the first with a gap, an unread one and a small one in the model.
Factors several(const std::string& folder) {
  Factors f(folder);
  f.factor(1).at("weights.bin", 4096);
  f.factor(2).at("parts/other.bin", 5);
  f.factor(3).at("weights.bin", 0);
  f.factor(4);
  f.m.weight("unread", {3}, {7, 8, 9});
  f.factor(5).at("weights.bin", 8192, {{"checksum", "0123"}, {"note", "kept"}});
  return f;
}

TEST(ExportLayout, FilesOffsetsAndKeysAreThoseOfTheOriginal) {
  TemporaryFolder folder;
  Factors f = several(folder.file("in"));
  const std::string from = f.save();
  fs::create_directory(folder.file("out"));
  const ExportedFiles out = export_trained_to(from, folder.file("out/trained.onnx"));
  EXPECT_THAT(out.report, IsEmpty());
  EXPECT_THAT(out.paths, testing::UnorderedElementsAre(folder.file("out/trained.onnx"), folder.file("out/weights.bin"),
                                                       folder.file("out/parts/other.bin")));
  EXPECT_EQ(out.paths[0], folder.file("out/trained.onnx"));
  EXPECT_THAT(files_in(folder.file("out")), ElementsAre("parts/other.bin", "trained.onnx", "weights.bin"));
  std::string weights = bytes_of(trained(2));
  weights.resize(4096);
  weights += bytes_of(trained(0));
  weights.resize(8192);
  weights += bytes_of(trained(4));
  EXPECT_EQ(file_bytes(folder.file("out/weights.bin")), weights);
  EXPECT_EQ(file_bytes(folder.file("out/parts/other.bin")), std::string(5, '\0') + bytes_of(trained(1)));
  // The messages differ in the tensor that lies in the model and in the checksum, which is none of what was trained.
  onnx::ModelProto before = f.m.proto, after = load_model(folder.file("out/trained.onnx"));
  EXPECT_EQ(saved_tensor(after, "d").raw_data(), bytes_of(trained(3)));
  EXPECT_EQ(entry_of(saved_tensor(after, "e"), "checksum"), "none");
  EXPECT_EQ(entry_of(saved_tensor(after, "e"), "note"), "kept");
  auto& changed = *before.mutable_graph()->mutable_initializer(5);
  ASSERT_EQ(changed.name(), "e");
  changed.mutable_external_data()->DeleteSubrange(3, 1);
  before.mutable_graph()->mutable_initializer(3)->set_raw_data(bytes_of(trained(3)));
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
}

// Names that are there already belong to the original, or to something else.
TEST(ExportLayout, ExistingFilesAreNotOverwritten) {
  TemporaryFolder folder;
  Factors f(folder.file("in"));
  f.factor(1).at("model.onnx.data", 0).factor(2).at("model_2.bin", 0).factor(3).at("weights.bin", 0).factor(4).at("main.bin", 0);
  const std::string from = f.save();
  const std::string original = file_bytes(folder.file("in/model.onnx.data"));
  const ExportedFiles beside = export_trained_to(from, folder.file("in/trained.onnx"));
  EXPECT_THAT(files_in(folder.file("in")),
              ElementsAre("main.bin", "model.onnx", "model.onnx.data", "model_2.bin", "trained.onnx", "trained.onnx.data",
                          "trained.onnx.main.bin", "trained.onnx.weights.bin", "trained_2.bin", "weights.bin"));
  EXPECT_EQ(file_bytes(folder.file("in/model.onnx.data")), original);
  EXPECT_THAT(beside.report, Contains(AllOf(HasSubstr("'weights.bin'"), HasSubstr("'trained.onnx.weights.bin'"))));

  fs::create_directory(folder.file("out"));
  write_bytes(folder.file("out/weights.bin"), "another's");
  export_trained_to(from, folder.file("out/trained.onnx"));
  EXPECT_EQ(file_bytes(folder.file("out/weights.bin")), "another's");
  const std::vector<std::string> names = {"main.bin",     "model.onnx.data",          "model_2.bin",
                                          "trained.onnx", "trained.onnx.weights.bin", "weights.bin"};
  EXPECT_EQ(files_in(folder.file("out")), names);
  export_trained_to(from, folder.file("out/trained.onnx"));  // in place of the first: its own files are replaced
  EXPECT_EQ(files_in(folder.file("out")), names);
  export_trained_to(from, folder.file("out/second.onnx"));  // beside the first, whose files stay
  EXPECT_EQ(files_in(folder.file("out")).size(), 11u);
}

// Two tensors may point to the same bytes: they cannot both be written there once they differ.
TEST(ExportLayout, SharedBytesArePartedWhereTheyAreTrained) {
  TemporaryFolder folder;
  Factors f(folder.file("in"));
  f.factor(1).at("w.bin", 64).factor(1).at("w.bin", 64).factor(1).at("w.bin", 64);
  f.factor(2).at("./w.bin", 0);
  const std::string from = f.save();
  fs::create_directory(folder.file("out"));
  ImportOptions options = samples(2);
  options.tie = {"a|c"};
  const ExportedFiles out = export_trained_to(from, folder.file("out/m.onnx"), options);
  EXPECT_THAT(out.report, ElementsAre(AllOf(HasSubstr("'b'"), HasSubstr("shared its bytes in 'w.bin'"))));
  const onnx::ModelProto after = load_model(folder.file("out/m.onnx"));
  EXPECT_EQ(entry_of(saved_tensor(after, "a"), "offset"), "64");
  EXPECT_EQ(entry_of(saved_tensor(after, "b"), "offset"), "4096");
  EXPECT_EQ(entry_of(saved_tensor(after, "c"), "offset"), "64");
  EXPECT_EQ(entry_of(saved_tensor(after, "d"), "location"), "./w.bin");
  EXPECT_THAT(files_in(folder.file("out")), ElementsAre("m.onnx", "w.bin"));
}

// A constant may lie over a parameter's bytes, or share those of another constant.
TEST(ExportLayout, ConstantsKeepWhatTheyHeld) {
  TemporaryFolder folder;
  Factors f(folder.file("in"));
  f.factor(1).at("w.bin", 0);
  f.factor(2).at("w.bin", 100);
  f.m.proto.mutable_graph()->mutable_initializer(1)->set_name("unread");
  f.m.proto.mutable_graph()->mutable_node(1)->set_input(1, "a");
  f.factor(3).at("w.bin", 200);
  onnx::TensorProto view = f.m.proto.graph().initializer(2);
  view.set_name("view");
  view.set_data_type(onnx::TensorProto::INT32);
  *f.m.proto.mutable_graph()->add_initializer() = view;
  const std::string from = f.save();
  fs::create_directory(folder.file("out"));
  export_trained_to(from, folder.file("out/m.onnx"));
  const std::string before = file_bytes(folder.file("in/w.bin")), after = file_bytes(folder.file("out/w.bin"));
  EXPECT_EQ(after.substr(100, 12), before.substr(100, 12));
  const onnx::ModelProto model = load_model(folder.file("out/m.onnx"));
  const int64_t moved = std::stoll(entry_of(saved_tensor(model, "view"), "offset")),
                kept = std::stoll(entry_of(saved_tensor(model, "c"), "offset"));
  EXPECT_EQ(after.substr(moved, 12), before.substr(200, 12));
  EXPECT_EQ(after.substr(kept, 12), bytes_of(trained(1)));
}

// A full disk, as far as a test can have one: the size that a file may grow to. Nothing is left, folders included.
TEST(ExportLayout, AFullDiskLeavesNothing) {
  TemporaryFolder folder;
  Factors f = several(folder.file("in"));
  const std::string from = f.save();
  fs::create_directory(folder.file("out"));
  const ImportedModel model = import_model(from, samples(2));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {200, 1000, 5000}) {
    const rlimit small{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string problem = message([&] { export_model(from, folder.file("out/t.onnx"), model.graph.parameters, give_all(5)); });
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(problem, HasSubstr("cannot write '")) << limit;
    EXPECT_TRUE(fs::is_empty(folder.file("out"))) << limit;
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message([&] { export_model(from, folder.file("out/t.onnx"), model.graph.parameters, give_all(5)); }), "");
}

TEST(ExportLayout, MoreThanTheDiskHoldsIsRefusedBeforeItIsWritten) {
  TemporaryFolder folder;
  EXPECT_THAT(message([&] { require_space(folder.file("x"), int64_t{1} << 60); }),
              AllOf(HasSubstr("'" + (folder.file("x")) + "'"), HasSubstr("1152921504606846976 bytes needed"), HasSubstr("bytes free")));
}

}  // namespace
}  // namespace zeroplan
