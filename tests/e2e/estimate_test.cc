// `zeroplan estimate --params`: the published accounting.
#include <array>
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

std::string output_of(const std::string& arguments) {
  const std::string command = std::string(ZEROPLAN_BINARY) + " " + arguments + " 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 4096> block;
  for (size_t n; (n = fread(block.data(), 1, block.size(), pipe.get())) > 0;) output.append(block.data(), n);
  return output;
}

// "   64   3   1.9 …" in the table, whatever the spaces.
bool has_row(const std::string& output, int ranks, int stage, const std::string& gigabytes) {
  char row[64];
  std::snprintf(row, sizeof row, "%8d %7d  %12s  ", ranks, stage, gigabytes.c_str());
  return output.find(row) != std::string::npos;
}

TEST(Estimate, PrintsThePublishedFigures) {
  const std::string output = output_of("estimate --params 7.5e9 --ranks 64");
  EXPECT_TRUE(has_row(output, 64, 0, "120.0")) << output;
  EXPECT_TRUE(has_row(output, 64, 1, "31.4")) << output;
  EXPECT_TRUE(has_row(output, 64, 2, "16.6")) << output;
  EXPECT_TRUE(has_row(output, 64, 3, "1.9")) << output;
  const std::string ten = output_of("estimate --params 10e9 --ranks 64");
  EXPECT_TRUE(has_row(ten, 64, 0, "160.0")) << ten;
  EXPECT_TRUE(has_row(ten, 64, 3, "2.5")) << ten;
}

TEST(Estimate, RefusesWhatItCannotUse) {
  EXPECT_NE(output_of("estimate").find("either a model or --params"), std::string::npos);
  EXPECT_NE(output_of("estimate --params 0.5").find("must be from 1"), std::string::npos);
  EXPECT_NE(output_of("estimate --params 1e9 --ranks 0").find("--ranks 0"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan
