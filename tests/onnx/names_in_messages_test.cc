// Refusals that name what the file calls a thing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

std::string refused(const std::string& path) {
  return message([&] { import_model(path, samples(2)); });
}

TEST(Initializers, OneOfEachName) {
  TemporaryFolder folder;
  ModelBuilder twice = small_regression(), nameless = small_regression();
  *twice.proto.mutable_graph()->add_initializer() = twice.proto.graph().initializer(0);
  nameless.proto.mutable_graph()->mutable_initializer(1)->clear_name();
  EXPECT_THAT(refused(twice.save(folder.file("m.onnx"))), HasSubstr("two initializers are named 'w'"));
  EXPECT_THAT(refused(nameless.save(folder.file("m.onnx"))), HasSubstr("initializer 1 has no name"));
}

// Under the names of the file, whatever a decoder makes of them on the way.
TEST(Types, InputsThatMustHaveOneAreNamed) {
  TemporaryFolder folder;
  const auto with = [&](const std::string& op, std::vector<std::string> inputs, const std::vector<std::string>& dims) {
    ModelBuilder m;
    m.input("x", dims, onnx::TensorProto::INT64).output("loss", {});
    m.weight("w", {3, 3}, std::vector<float>(9, 1));
    m.weight("k", {2, 3, 1, 1}, std::vector<float>(6, 1));
    m.input("c", {"N", "3"}, onnx::TensorProto::BOOL);
    m.node(op, std::move(inputs), {"y"});
    m.add("ReduceMean", {"y"}, "loss", {{"keepdims", 0}});
    return refused(m.save(folder.file("m.onnx")));
  };
  const auto named = [](const char* first, const char* a, const char* second, const char* b) {
    return HasSubstr(fmt::format("its input '{}' is {}, but its input '{}' is {}; the two must have one type: export the model with a Cast",
                                 first, a, second, b));
  };
  EXPECT_THAT(with("MatMul", {"x", "w"}, {"N", "3"}), named("x", "int64", "w", "float32"));
  EXPECT_THAT(with("Gemm", {"x", "w"}, {"N", "3"}), named("x", "int64", "w", "float32"));
  EXPECT_THAT(with("Mul", {"x", "w"}, {"N", "1"}), named("x", "int64", "w", "float32"));
  EXPECT_THAT(with("Where", {"c", "w", "x"}, {"N", "3"}), named("w", "float32", "x", "int64"));
  EXPECT_THAT(with("Conv", {"x", "k"}, {"N", "3", "4", "4"}), named("x", "int64", "k", "float32"));
}

}  // namespace
}  // namespace zeroplan
