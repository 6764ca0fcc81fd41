// ONNX Runtime's training artifacts: the checkpoint's format, damaged ones, and models that get their parameters from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"
#include "graph/onnx/exporter.h"
#include "graph/onnx/ort_checkpoint.h"
#include "tests/onnx/checkpoint_builder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

std::string artifacts(const std::string& file = "") { return std::string(kSourceFolder) + "/tests/models/ort_artifacts_mlp" + file; }

std::string file_bytes(const std::string& path) {
  const MappedFile file(path);
  return {file.data(), static_cast<size_t>(file.size())};
}

OrtCheckpoint parse(const std::string& bytes) { return read_checkpoint(std::as_bytes(std::span(bytes))); }

TEST(Checkpoint, TheStoredOneIsRead) {
  const OrtCheckpoint c = parse(file_bytes(artifacts("/checkpoint")));
  ASSERT_EQ(c.tensors.size(), 6u);
  std::set<std::string> trained, frozen;
  for (const CheckpointTensor& t : c.tensors) (t.trained ? trained : frozen).insert(t.name + to_string(t.shape));
  EXPECT_EQ(trained, (std::set<std::string>{"2.weight[16,16]", "2.bias[16]", "4.weight[5,16]", "4.bias[5]"}));
  EXPECT_EQ(frozen, (std::set<std::string>{"0.weight[16,12]", "0.bias[16]"}));
}

// Whatever is read from a damaged file lies inside it.
void expect_sound_or_refused(const std::string& bytes) {
  try {
    for (const CheckpointTensor& t : parse(bytes).tensors)
      if (!t.external) {
        EXPECT_GE(t.offset, 0);
        EXPECT_LE(t.offset + t.bytes, static_cast<int64_t>(bytes.size()));
      }
  } catch (const Error&) {
  }
}

TEST(Checkpoint, EveryFlippedByteIsRefusedOrHarmless) {
  const std::string sound = file_bytes(artifacts("/checkpoint"));
  for (size_t i = 0; i < sound.size(); ++i)
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string damaged = sound;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      expect_sound_or_refused(damaged);
    }
}

TEST(Checkpoint, EveryTruncationIsRefusedOrHarmless) {
  const std::string sound = file_bytes(artifacts("/checkpoint"));
  for (size_t length = 0; length < sound.size(); ++length) expect_sound_or_refused(sound.substr(0, length));
  EXPECT_THROW(parse(sound.substr(0, 40)), Error);
}

TEST(Checkpoint, WhatCannotBeUsedIsNamed) {
  const auto refusal = [](const TestCheckpoint& c) { return message([&] { parse(CheckpointBuilder().build(c)); }); };
  const TestTensor w{"w", {2}, {1, 2}};
  EXPECT_EQ(refusal({.trained = {w}}), "");
  EXPECT_THAT(refusal({.trained = {w}, .version = 1}), HasSubstr("version 1"));
  EXPECT_THAT(refusal({.trained = {w}, .nominal = true}), HasSubstr("nominal"));
  EXPECT_THAT(refusal({.trained = {w}, .frozen = {w}}), HasSubstr("'w' twice"));
  EXPECT_THAT(refusal({.trained = {{"w", {3}, {1, 2}}}}), HasSubstr("needs 12 bytes but holds 8"));
  EXPECT_THAT(refusal({.trained = {{"w", {-1}, {}}}}), HasSubstr("dimension of -1"));
  EXPECT_THAT(refusal({.trained = {{"w", {2}, {}, 0}}}), HasSubstr("external data, of which the checkpoint has none"));
  EXPECT_THAT(refusal({.trained = {{"", {2}, {1, 2}}}}), HasSubstr("a name of 0 bytes"));
}

// small_regression with its weights as inputs, under the name that artifacts have.
ModelBuilder without_values() {
  ModelBuilder m = small_regression();
  m.proto.mutable_graph()->clear_initializer();
  m.input("w", {"3", "2"}).input("b", {"2"});
  return m;
}

const TestTensor kW{"w", {3, 2}, {1, 2, 3, 4, 5, 6}};
const TestTensor kB{"b", {2}, {0.5f, -0.5f}};

double loss_of(const ImportedModel& model) {
  return evaluate_loss(model, {{"x", HostTensor::of<float>(DType::f32, {2, 3}, {1, 0, 2, 3, 1, -1})}});
}

TEST(Artifacts, TheCheckpointGivesValuesAndRoles) {
  TemporaryFolder folder;
  const double expected = loss_of(import_model(small_regression().save(folder.file("plain.onnx")), samples(2)));
  without_values().save(folder.file("run_eval_model.onnx"));
  write_bytes(folder.file("run_checkpoint"),
              CheckpointBuilder().build({.trained = {kW}, .frozen = {kB}, .step = 3, .learning_rate = 0.5f}));
  for (const std::string& path : {folder.file("run_eval_model.onnx"), folder.path()}) {
    const ImportedModel model = import_model(path, samples(2));
    EXPECT_EQ(loss_of(model), expected);
    for (const Parameter& p : model.graph.parameters) EXPECT_EQ(p.trainable, p.name == "w") << p.name;
    EXPECT_THAT(model.report, testing::Contains(HasSubstr("has taken 3 steps")));
  }
}

TEST(Artifacts, ExternalDataIsReadAndChecked) {
  TemporaryFolder folder;
  const double expected = loss_of(import_model(small_regression().save(folder.file("plain.onnx")), samples(2)));
  const std::string path = without_values().save(folder.file("eval_model.onnx"));
  const TestTensor outside{"w", {3, 2}, {}, 8};
  write_bytes(folder.file("checkpoint"), CheckpointBuilder().build({.trained = {outside, kB}, .external = true}));
  EXPECT_THAT(message([&] { import_model(path, samples(2)); }), HasSubstr("checkpoint.data"));
  std::string data(8 + 24, '\0');
  std::memcpy(&data[8], kW.values.data(), 24);
  write_bytes(folder.file("checkpoint.data"), data);
  EXPECT_EQ(loss_of(import_model(path, samples(2))), expected);
  write_bytes(folder.file("checkpoint.data"), data.substr(0, 20));
  EXPECT_THAT(message([&] { import_model(path, samples(2)); }), HasSubstr("lie outside"));
}

TEST(Artifacts, TheDigestCoversTheCheckpoint) {
  TemporaryFolder folder;
  const std::string path = without_values().save(folder.file("eval_model.onnx"));
  const auto digest = [&](const TestCheckpoint& c) {
    write_bytes(folder.file("checkpoint"), CheckpointBuilder().build(c));
    return import_model(path, samples(2)).model_digest;
  };
  const std::string first = digest({.trained = {kW, kB}});
  EXPECT_EQ(digest({.trained = {kW, kB}}), first);
  EXPECT_NE(digest({.trained = {kB, kW}}), first);  // other offsets
  EXPECT_NE(digest({.trained = {kW, {"b", {2}, {0.5f, 0.5f}}}}), first);
}

TEST(Artifacts, WithoutCheckpointTheWayOutIsNamed) {
  TemporaryFolder folder;
  std::filesystem::copy_file(artifacts("/training_model.onnx"), folder.file("training_model.onnx"));
  EXPECT_THAT(message([&] { import_model(folder.file("training_model.onnx"), samples(2)); }), HasSubstr("<prefix>checkpoint"));
  EXPECT_THAT(message([&] { ModelFile(artifacts() + "/data"); }), HasSubstr("folder without training_model.onnx"));
}

// In the model, or beside it where that would get too large.
TEST(Artifacts, TheExportStandsAlone) {
  TemporaryFolder folder;
  const ImportedModel before = import_model(artifacts(), samples(8));
  for (const bool beside : {false, true}) {
    const std::string path = folder.file(beside ? "large.onnx" : "trained.onnx");
    const auto give = [&](const TakeParameter& take) {
      for (size_t i = 0; i < before.graph.parameters.size(); ++i) {
        const std::vector<float> values(elements(before.graph.parameters[i].shape), 0.25f);
        take(static_cast<int>(i), std::as_bytes(std::span(values)));
      }
    };
    const ExportedFiles files = export_model(before.model_path, path, before.graph.parameters, give, beside ? 1000 : kProtobufLimit);
    EXPECT_EQ(files.paths, beside ? (std::vector{path, path + ".data"}) : std::vector{path});
    EXPECT_EQ(files.report.size(), beside ? 1u : 0u);
    const ImportedModel after = import_model(path, samples(8));
    ASSERT_EQ(after.graph.parameters.size(), before.graph.parameters.size());
    WeightFiles weights(path);
    for (const Parameter& p : after.graph.parameters) {
      std::vector<float> values(elements(p.shape));
      read_weight(weights, p.source, 0, static_cast<int64_t>(values.size()), DType::f32, values.data());
      EXPECT_EQ(values, std::vector<float>(values.size(), 0.25f)) << p.name;
      EXPECT_EQ(p.source.file, beside ? "large.onnx.data" : "");
    }
  }
}

}  // namespace
}  // namespace zeroplan
