#include "tests/onnx/importer_rows.h"
#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "tests/onnx/evaluate.h"

namespace zeroplan {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

std::vector<ImporterRow> all_rows() {
  std::vector<ImporterRow> rows = file_rows();
  for (const auto& more : {parameter_rows(), operator_rows()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

class Importer : public testing::TestWithParam<ImporterRow> {};

TEST_P(Importer, Row) {
  const ImporterRow& row = GetParam();
  TemporaryFolder folder;
  ImportOptions options = samples(2);
  if (row.options) row.options(options);
  const std::string path = row.save(folder);
  ImportedModel model;
  const std::string refused = message([&] { model = import_model(path, options); });
  EXPECT_THAT(refused, HasSubstr(row.error));
  if (!row.error.empty()) return;
  ASSERT_EQ(refused, "");
  std::vector<std::string> trained;
  for (const Parameter& p : model.graph.parameters)
    if (p.trainable) trained.push_back(p.name);
  EXPECT_THAT(trained, UnorderedElementsAreArray(row.trained));
  EXPECT_NEAR(evaluate_loss(model, {{"x", HostTensor::of<float>(DType::f32, {2, 2}, {1, 2, 3, 4})}}), row.loss, 1e-5);
  for (const std::string& part : row.report) EXPECT_THAT(model.report, Contains(HasSubstr(part)));
}

std::string name_of(const testing::TestParamInfo<ImporterRow>& info) {
  std::string name;
  for (const char* c = info.param.topic; *c != '\0'; ++c) name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Importer, testing::ValuesIn(all_rows()), name_of);

}  // namespace
}  // namespace zeroplan
