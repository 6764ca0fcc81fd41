// What inspect shows of a model that cannot be trained yet, and the lines of the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/onnx/importer.h"
#include "tests/onnx/model_builder.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

struct Seen {
  ImportedModel model;
  std::vector<std::string> problems;
};

Seen inspect(const ModelBuilder& builder, ImportOptions options = {}) {
  TemporaryFolder folder;
  options.samples = 2;
  Seen seen;
  seen.model = ModelFile(builder.save(folder.file("m.onnx"))).inspect(options, seen.problems);
  return seen;
}

const RoleRow& row_of(const Seen& seen, const std::string& name) {
  for (const RoleRow& row : seen.model.roles)
    if (row.initializer == name) return row;
  throw Error("no row " + name);
}

// x[N,3,4,4] → Conv → an operator on strings → y[N,2,4,4], no loss.
ModelBuilder convolution() {
  ModelBuilder m(17);
  m.input("x", {"N", "3", "4", "4"}).output("y", {"N", "2", "4", "4"});
  m.weight("w", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6});
  m.node("Conv", {"x", "w"}, {"h"}, "first_conv");
  m.node("StringNormalizer", {"h"}, {"y"}, "odd_one");
  return m;
}

TEST(Inspect, WithoutALossItShowsRolesAndEveryProblem) {
  const Seen seen = inspect(convolution());
  EXPECT_EQ(row_of(seen, "w").role, Role::parameter);
  ASSERT_EQ(seen.model.inputs.size(), 1u);
  EXPECT_THAT(seen.problems, Contains(AllOf(HasSubstr("no scalar output"), HasSubstr("--loss 'softmax_cross_entropy(y, labels)'"),
                                            HasSubstr("--loss 'mse(y, target)'"))));
  EXPECT_THAT(seen.problems,
              Contains(AllOf(HasSubstr("'odd_one'"), HasSubstr("StringNormalizer"), HasSubstr("no decoder"), HasSubstr("opset 17"))));
}

TEST(Inspect, ALossThatIsNoScalar) {
  ImportOptions options;
  options.loss = "y";
  const ModelBuilder m = [] {
    ModelBuilder model = small_regression(17);
    model.output("y", {"N", "2"});
    return model;
  }();
  EXPECT_THAT(inspect(m, options).problems,
              Contains(AllOf(HasSubstr("'y' is float32 of shape [2,2]"), HasSubstr("--loss 'softmax_cross_entropy(y, labels)'"),
                             HasSubstr("--loss 'mse(y, target)'"))));
}

TEST(Inspect, HalfWeightsKeepTheirTypeAndRole) {
  ModelBuilder m;
  m.input("x", {"N", "2"}, onnx::TensorProto::FLOAT16).output("loss", {}, onnx::TensorProto::FLOAT16);
  onnx::TensorProto& w = m.weight("w", {2}, {});
  w.set_data_type(onnx::TensorProto::FLOAT16);
  w.set_raw_data(std::string(4, '\0'));
  m.node("Mul", {"x", "w"}, {"y"});
  ModelBuilder::set(m.node("ReduceMean", {"y"}, {"loss"}), "keepdims", 0);
  const Seen seen = inspect(m);
  EXPECT_EQ(row_of(seen, "w").type, "float16");
  EXPECT_EQ(row_of(seen, "w").role, Role::parameter);
  EXPECT_TRUE(seen.problems.empty());
  EXPECT_THAT(seen.model.report, Contains(AllOf(HasSubstr("1 parameter is stored as float16"), HasSubstr("float32"))));
}

TEST(Inspect, ErrorsNameTheOpsetOfTheFile) {
  ModelBuilder m = small_regression(17);
  m.node("Unique", {"y"}, {"rest"});
  m.node("Add", {"loss", "rest"}, {"more"});
  ModelBuilder::set(m.node("ReduceMean", {"more"}, {"sum"}), "keepdims", 0);
  m.output("sum", {});
  ImportOptions options;
  options.loss = "sum";
  const Seen seen = inspect(m, options);
  EXPECT_EQ(seen.model.opset, 17);
  EXPECT_EQ(seen.model.decoded_opset, 21);
  for (const std::string& problem : seen.problems) EXPECT_THAT(problem, testing::Not(HasSubstr("opset 21")));
  EXPECT_THAT(seen.problems, Contains(HasSubstr("opset 17")));
}

TEST(Report, AFileThatDoesNotTellBuffersApart) {
  ModelBuilder m = small_regression();
  m.proto.set_producer_name("pytorch");
  EXPECT_THAT(inspect(m).model.report,
              Contains(AllOf(HasSubstr("does not say which tensors are buffers"), HasSubstr("all 2"), HasSubstr("--freeze PATTERN"))));
  m.proto.set_producer_name("zeroplan");
  EXPECT_THAT(inspect(m).model.report, testing::Not(Contains(HasSubstr("buffers"))));
}

TEST(Report, ExpressionsThatTheExporterComputed) {
  ModelBuilder m = small_regression();
  const auto note = [&](int index, const char* key, const char* value) {
    auto& entry = *m.proto.mutable_graph()->mutable_initializer(index)->add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  };
  m.weight("scaled", {2}, {1, -1});
  m.node("Mul", {"y", "scaled"}, {"z"});
  ModelBuilder::set(m.node("ReduceMean", {"z"}, {"other"}), "keepdims", 0);
  m.output("other", {});
  note(1, "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
  note(0, "pkg.torch.export.graph_signature.InputSpec.kind", "PARAMETER");
  note(2, "pkg.onnxscript.optimizer.folded_from", "['b']");
  ImportOptions options;
  options.loss = "other";
  EXPECT_THAT(inspect(m, options).model.report,
              Contains(AllOf(HasSubstr("'scaled' was computed by the exporter from b"), HasSubstr("of its own"))));
}

}  // namespace
}  // namespace zeroplan
