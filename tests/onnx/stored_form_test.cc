// Parameters that a file stores in another form than they are trained in: read, trained as floats, written back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

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

// 1, 1/3, -2, 65504, 2^-24 and 1.5 in each form.
const std::vector<uint16_t> kHalves = {0x3c00, 0x3555, 0xc000, 0x7bff, 0x0001, 0x3e00};
const std::vector<uint16_t> kBrains = {0x3f80, 0x3eab, 0xc000, 0x477f, 0x3380, 0x3fc0};

// x[N,6] · w, mean. `w` is to be filled.
ModelBuilder product(onnx::TensorProto& w) {
  ModelBuilder m;
  m.input("x", {"N", "6"}, w.data_type()).output("loss", {}, w.data_type());
  w.set_name("w");
  w.add_dims(6);
  *m.proto.mutable_graph()->add_initializer() = w;
  m.node("Mul", {"x", "w"}, {"y"});
  m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
  return m;
}

ModelBuilder raw_product(int type, const void* values, size_t bytes) {
  onnx::TensorProto w;
  w.set_data_type(type);
  w.set_raw_data(values, bytes);
  return product(w);
}

ModelBuilder half_product() { return raw_product(onnx::TensorProto::FLOAT16, kHalves.data(), 12); }

std::vector<float> weights_of(const std::string& path, const Parameter& p) {
  WeightFiles files(path);
  std::vector<float> values(elements(p.shape));
  read_weight(files, p.source, 0, static_cast<int64_t>(values.size()), DType::f32, values.data());
  return values;
}

// Gives parameter 0 these values in f32.
GiveParameters giving(const std::vector<float>& values) {
  return [values](const TakeParameter& take) { take(0, std::as_bytes(std::span(values))); };
}

std::vector<uint16_t> halves_in(const onnx::TensorProto& tensor) {
  std::vector<uint16_t> bits(tensor.raw_data().size() / 2);
  std::memcpy(bits.data(), tensor.raw_data().data(), tensor.raw_data().size());
  return bits;
}

TEST(StoredForm, HalvesAreTrainedInFloatAndWrittenBackAsHalves) {
  TemporaryFolder folder;
  ModelBuilder m = half_product();
  const std::string path = m.save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(2));
  ASSERT_EQ(model.graph.parameters.size(), 1u);
  EXPECT_EQ(model.graph.parameters[0].source.type, StoredType::f16);
  EXPECT_EQ(model.graph.parameters[0].dtype, DType::f32);
  EXPECT_THAT(model.report, Contains(AllOf(HasSubstr("1 parameter is stored as float16"), HasSubstr("trained in float32"))));
  EXPECT_EQ(model.roles[0].type, "float16");
  const std::vector<float> before = weights_of(path, model.graph.parameters[0]);
  EXPECT_THAT(before, ElementsAre(1, 0.333251953125f, -2, 65504, std::ldexp(1.0f, -24), 1.5f));
  const HostTensor x = HostTensor::of<float>(DType::f32, {2, 6}, {1, 2, 3, 0, 4, 5, 6, 7, 8, 0, 9, 1});
  double expected = 0;
  for (int64_t i = 0; i < 12; ++i) expected += x.get(i) * before[i % 6] / 12;
  EXPECT_NEAR(evaluate_loss(model, {{"x", x}}), expected, 1e-6);

  export_model(path, folder.file("same.onnx"), model.graph.parameters, giving(before));
  EXPECT_EQ(load_model(folder.file("same.onnx")).SerializeAsString(), m.bytes());
  // Rounded to even, up, down, to the largest, and to a subnormal.
  export_model(path, folder.file("out.onnx"), model.graph.parameters,
               giving({1 + 0x1p-11f, 1 + 0x1.8p-11f, -0.1f, 65519, 0x1.1p-24f, -65504}));
  const onnx::ModelProto out = load_model(folder.file("out.onnx"));
  EXPECT_EQ(saved_tensor(out, "w").data_type(), onnx::TensorProto::FLOAT16);
  EXPECT_THAT(halves_in(saved_tensor(out, "w")), ElementsAre(0x3c00, 0x3c01, 0xae66, 0x7bff, 0x0001, 0xfbff));
}

TEST(StoredForm, BrainFloatsToo) {
  TemporaryFolder folder;
  const std::string path = raw_product(onnx::TensorProto::BFLOAT16, kBrains.data(), 12).save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(2));
  EXPECT_THAT(model.report, Contains(HasSubstr("stored as bfloat16")));
  EXPECT_THAT(weights_of(path, model.graph.parameters[0]), ElementsAre(1, 0.333984375f, -2, 65280, std::ldexp(1.0f, -24), 1.5f));
  export_model(path, folder.file("out.onnx"), model.graph.parameters, giving({1 + 0x1p-8f, 1 + 0x1.8p-7f, 3e38f, -0.1f, 0, 0x1p-133f}));
  EXPECT_THAT(halves_in(saved_tensor(load_model(folder.file("out.onnx")), "w")),
              ElementsAre(0x3f80, 0x3f82, 0x7f62, 0xbdcd, 0x0000, 0x0001));
}

// make_tensor of ONNX's helpers stores halves as numbers of int32_data.
TEST(StoredForm, HalvesStoredAsNumbersAreReadAnywhere) {
  TemporaryFolder folder;
  onnx::TensorProto w;
  w.set_data_type(onnx::TensorProto::FLOAT16);
  for (const uint16_t bits : kHalves) w.add_int32_data(bits);
  const std::string path = product(w).save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(2));
  const Parameter& p = model.graph.parameters.at(0);
  EXPECT_TRUE(p.source.varints);
  WeightFiles files(path);
  const std::vector<float> all = weights_of(path, p);
  EXPECT_THAT(all, ElementsAre(1, 0.333251953125f, -2, 65504, std::ldexp(1.0f, -24), 1.5f));
  for (int64_t first = 0; first < 6; ++first) {
    double part[2] = {};
    const int64_t count = std::min<int64_t>(2, 6 - first);
    read_weight(files, p.source, first, count, DType::f64, part);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(part[i], all[first + i]);
  }
  float beyond = 0;
  EXPECT_THAT(message([&] { read_weight(files, p.source, 6, 1, DType::f32, &beyond); }), HasSubstr("'w'"));
  std::vector<float> changed = all;
  changed[1] = 0.1f;
  export_model(path, folder.file("out.onnx"), model.graph.parameters, giving(changed));
  std::vector<uint16_t> expected = kHalves;
  expected[1] = 0x2e66;
  EXPECT_EQ(halves_in(saved_tensor(load_model(folder.file("out.onnx")), "w")), expected);
}

TEST(StoredForm, AValueThatAHalfCannotHoldNamesItsParameter) {
  TemporaryFolder folder;
  const std::string path = half_product().save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(2));
  for (const float large : {65520.0f, -1e9f, INFINITY})
    EXPECT_THAT(message([&] {
                  export_model(path, folder.file("out.onnx"), model.graph.parameters, giving({0, 0, large, 0, 0, 0}));
                }),
                AllOf(HasSubstr("'w'"), HasSubstr("element 2"), HasSubstr("float16 cannot hold"), HasSubstr("bfloat16 or float32")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // the model alone
}

// What single precision cannot tell apart is still told apart in the file, where it was not trained.
TEST(StoredForm, DoublesThatDidNotMoveKeepAllTheirBits) {
  TemporaryFolder folder;
  const std::vector<double> stored = {1.0 / 3, 1e-300, M_PI, -0.0, 1e300, 2};
  const std::string path = raw_product(onnx::TensorProto::DOUBLE, stored.data(), 48).save(folder.file("m.onnx"));
  const ImportedModel model = import_model(path, samples(2));
  std::vector<float> values(stored.begin(), stored.end());
  values[5] = 2.5f;
  export_model(path, folder.file("out.onnx"), model.graph.parameters, giving(values));
  std::vector<double> expected = stored, written(6);
  expected[5] = 2.5;
  std::memcpy(written.data(), saved_tensor(load_model(folder.file("out.onnx")), "w").raw_data().data(), 48);
  EXPECT_EQ(written, expected);
}

TEST(StoredForm, ADoubleThatAFloatCannotHoldIsAnError) {
  TemporaryFolder folder;
  const std::vector<float> stored(6, 1);
  const std::string path = raw_product(onnx::TensorProto::FLOAT, stored.data(), 24).save(folder.file("m.onnx"));
  ImportOptions options = samples(2);
  options.precision = DType::f64;
  const ImportedModel model = import_model(path, options);
  const std::vector<double> values = {0, 1e39, 0, 0, 0, 0};
  const auto give = [&](const TakeParameter& take) { take(0, std::as_bytes(std::span(values))); };
  EXPECT_THAT(message([&] { export_model(path, folder.file("out.onnx"), model.graph.parameters, give); }),
              AllOf(HasSubstr("'w'"), HasSubstr("float32 cannot hold")));
}

}  // namespace
}  // namespace zeroplan
