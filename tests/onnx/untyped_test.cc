// Values whose type nobody knows, as an operator that made them is not ONNX's own.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/importer.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

// ONNX's shape inference of these crashes on an input without a type.
TEST(Untyped, WhatStandsBehindAnUnknownOperatorDoesNotCrashTheConverter) {
  const auto behind_unknown = [](const std::string& op, const std::string& domain) {
    TemporaryFolder folder;
    ModelBuilder m = small_regression();
    m.proto.mutable_opset_import(0)->set_version(20);
    for (const char* other : {"custom", "ai.onnx.ml"}) {
      onnx::OperatorSetIdProto& import = *m.proto.add_opset_import();
      import.set_domain(other);
      import.set_version(2);
    }
    m.node("Unknown", {}, {"untyped"}).set_domain("custom");
    onnx::NodeProto& node = m.node(op, {"untyped"}, {"made"});
    node.set_domain(domain);
    if (op == "EyeLike") ModelBuilder::set(node, "dtype", 1);
    if (op == "RegexFullMatch") ModelBuilder::set(node, "pattern", std::string("a"));
    if (op == "LabelEncoder") {
      ModelBuilder::set(node, "keys_int64s", std::vector<int64_t>{1});
      ModelBuilder::set(node, "values_int64s", std::vector<int64_t>{2});
    }
    ImportOptions options;
    options.samples = 2;
    import_model(m.save(folder.file("m.onnx")), options);
  };
  EXPECT_NO_THROW(behind_unknown("EyeLike", ""));
  EXPECT_NO_THROW(behind_unknown("RegexFullMatch", ""));
  EXPECT_NO_THROW(behind_unknown("LabelEncoder", "ai.onnx.ml"));
}

}  // namespace
}  // namespace zeroplan
