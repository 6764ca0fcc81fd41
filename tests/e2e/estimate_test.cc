// `zeroplan estimate --params`: the published accounting.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

std::string output_of(const std::string& arguments) { return run_command(std::string(kProgram) + " " + arguments).output; }

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

TEST(Estimate, ChoosesTheUnitBySize) {
  const std::string small = output_of("estimate --params 1e6 --ranks 64");
  EXPECT_NE(small.find("MB per rank"), std::string::npos) << small;
  EXPECT_TRUE(has_row(small, 64, 0, "16.0")) << small;
  EXPECT_TRUE(has_row(small, 64, 3, "0.25")) << small;
  const TinyCase tiny(tiny_mlp(2, 4), {});
  const std::string model = output_of("estimate " + tiny.model() + " --ranks 1");
  EXPECT_NE(model.find(" 640 B"), std::string::npos) << model;  // 40 parameters of 16 bytes
  EXPECT_EQ(model.find("0.0000"), std::string::npos) << model;
}

TEST(Estimate, RefusesWhatItCannotUse) {
  const TinyCase tiny(tiny_mlp(2, 4), {});
  const std::string undivided = output_of("estimate " + tiny.model() + " --ranks 2 --batch 3");
  EXPECT_NE(undivided.find("--batch 3 is not a multiple"), std::string::npos) << undivided;
  EXPECT_EQ(undivided.find("published"), std::string::npos) << undivided;
  EXPECT_NE(output_of("estimate").find("either a model or --params"), std::string::npos);
  EXPECT_NE(output_of("estimate --params 0.5").find("must be from 1"), std::string::npos);
  EXPECT_NE(output_of("estimate --params 1e9 --ranks 0").find("--ranks 0"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan
