#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "case_file.h"
#include "graph/text/text.h"
#include "graph_values.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

bool update = false;  // --update: write the output that the passes give into the case files

const std::string kFolder = std::string(kSourceFolder) + "/tests/passes/cases/";

void expect_close(const std::map<std::string, HostTensor>& actual, const std::map<std::string, HostTensor>& expected, double tolerance) {
  for (const auto& [name, tensor] : actual) {
    const auto found = expected.find(name);
    if (found == expected.end()) {
      EXPECT_EQ(name, "eval loss sum");
      continue;
    }
    ASSERT_EQ(tensor.shape(), found->second.shape()) << name;
    for (int64_t i = 0; i < tensor.count(); ++i)
      EXPECT_NEAR(tensor.get(i), found->second.get(i), tolerance * (1 + std::abs(found->second.get(i)))) << name << " at " << i;
  }
}

class PassCase : public testing::TestWithParam<std::string> {};

TEST_P(PassCase, GivesTheWrittenOutputAndTheSameNumbers) {
  const std::string path = kFolder + GetParam() + ".txt";
  CaseFile file = read_case(path);
  const Graph before = parse_graph(file.input);
  Graph after = before;
  run_passes(after, file);
  const std::string printed = print_graph(after);
  if (update && (printed != file.output || print_graph(before) != file.input)) {
    file.input = print_graph(before);
    file.output = printed;
    write_case(path, file);
  }
  EXPECT_EQ(printed, file.output);

  const auto results_before = results(before), results_after = results(after);
  ASSERT_FALSE(results_after.empty());
  const bool half = is_half(file.options.precision);
  expect_close(results_after, results_before, half ? 0x1p-5 : 1e-7);  // exporters round the constants of a GELU to single precision
  if (results_after.count("eval loss sum") && !half) {
    EXPECT_EQ(results_after.at("eval loss sum"), results_before.at("loss sum"));
  }
  if (half || before.loss.sum == kNone || before.parameters.empty()) return;  // differences are taken in double
  const auto expected = numeric_gradients(before), actual = gradients(after);
  EXPECT_EQ(actual.size(), expected.size());
  expect_close(actual, expected, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Cases, PassCase, testing::ValuesIn(case_names(kFolder)), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zeroplan

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) zeroplan::update = zeroplan::update || std::strcmp(argv[i], "--update") == 0;
  return RUN_ALL_TESTS();
}
