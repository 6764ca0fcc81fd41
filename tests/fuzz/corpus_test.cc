// Inputs that the fuzzer found faults with: each is read or refused, in time and in memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "tests/fuzz/targets.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

constexpr double kMostSeconds = 10;
constexpr int64_t kMostKilobytes = int64_t{2} << 20;

std::vector<std::string> corpus() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(kSourceFolder) + "/tests/fuzz/corpus"))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsReadOrRefused) {
  for (const auto target : {inspect_file, compile_file}) {
    const double begin = processor_seconds();
    EXPECT_NO_THROW(target(GetParam()));
    EXPECT_LT(processor_seconds() - begin, kMostSeconds);
  }
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, kMostKilobytes);
}

INSTANTIATE_TEST_SUITE_P(Files, Corpus, testing::ValuesIn(corpus()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace zeroplan
