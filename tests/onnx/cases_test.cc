// A model per file in cases/, as text, and what another runtime gives for it as it stands: operators whose meaning changed between opsets,
// recurrent operators, control flow, and operators that are made of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"
#include "tests/conformance/forward.h"
#include "tests/onnx/evaluate.h"
#include "tests/onnx/text_model.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

struct TextCase {
  std::string model;  // in ONNX's text form
  DataSet data;
};

SuiteTensor read_tensor(std::istringstream& line) {
  SuiteTensor tensor;
  std::string type, dims, colon;
  line >> tensor.name >> type >> dims >> colon;
  const std::map<std::string, DType> types = {
      {"float", DType::f32}, {"int64", DType::i64}, {"int32", DType::i32}, {"bool", DType::boolean}};
  Shape shape;
  std::istringstream list(dims == "scalar" ? "" : dims);
  for (std::string dim; std::getline(list, dim, ',');) shape.push_back(std::stoll(dim));
  std::vector<double> values(elements(shape));
  for (double& value : values) line >> value;
  if (!line) throw Error("test data cut off: " + tensor.name);
  tensor.values = HostTensor::of(types.at(type), shape, values);
  return tensor;
}

TextCase read_case(const std::filesystem::path& path) {
  std::ifstream file(path);
  TextCase read;
  bool data = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "---") data = true;
    if (line == "---" || line[0] == '#') continue;
    std::istringstream words(line);
    std::string kind;
    if (!data)
      read.model += line + "\n";
    else if (words >> kind; kind == "input")
      read.data.inputs.push_back(read_tensor(words));
    else
      read.data.outputs.push_back(read_tensor(words));
  }
  return read;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(kSourceFolder) + "/tests/onnx/cases"))
    if (entry.is_regular_file()) names.push_back(entry.path().parent_path().filename().string() + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class CasesTest : public testing::TestWithParam<std::string> {};

TEST_P(CasesTest, GivesTheOutputsOfTheOriginal) {
  const TextCase test = read_case(std::string(kSourceFolder) + "/tests/onnx/cases/" + GetParam() + ".txt");
  TemporaryFolder folder;
  const ModelFile file(save_text(folder.file("m.onnx"), test.model));
  const std::map<std::string, HostTensor> outputs = evaluate_reference(import_forward(file, test.data, DType::f64));
  ASSERT_FALSE(test.data.outputs.empty());
  for (const SuiteTensor& wanted : test.data.outputs) {
    const HostTensor& output = outputs.at(wanted.name);
    ASSERT_EQ(output.shape(), wanted.values.shape()) << wanted.name;
    EXPECT_EQ(is_floating(output.dtype()), is_floating(wanted.values.dtype())) << wanted.name;
    for (int64_t i = 0; i < output.count(); ++i)
      EXPECT_NEAR(output.get(i), wanted.values.get(i), 1e-5 * std::max(1.0, std::abs(wanted.values.get(i)))) << wanted.name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CasesTest, testing::ValuesIn(case_names()), [](const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

}  // namespace
}  // namespace zeroplan
