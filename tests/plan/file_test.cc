// Plans as bytes: round trip, hostile files, writing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "runtime/plan/dump.h"
#include "tests/error_of.h"
#include "tests/plan/plans.h"

namespace zeroplan::test {
namespace {

Plan small_plan() { return compile_graph(chain(2, {4, 6}), options_of(2, 3)); }

std::string refusal(const std::string& bytes) {
  return error_of([&] { parse_plan(bytes, "some.zplan"); });
}

TEST(PlanFile, RoundTrip) {
  for (int stage : {0, 1, 2, 3}) {
    const Plan plan = residual_plan(3, stage);
    const std::string bytes = serialize_plan(plan);
    const Plan again = parse_plan(bytes, "x");
    EXPECT_EQ(serialize_plan(again), bytes);
    EXPECT_EQ(plan_digest(again), plan.header.digest);
    EXPECT_EQ(again.programs[1].steps.size(), plan.programs[1].steps.size());
    EXPECT_EQ(again.source.size(), plan.source.size());
    EXPECT_EQ(violations(again), "");
  }
}

TEST(PlanFile, StatisticsAreKept) {
  const Plan plan = normalized_plan(2, 3);
  const Plan again = parse_plan(serialize_plan(plan), "x");
  ASSERT_EQ(again.statistics.size(), 2u);
  EXPECT_EQ(again.statistics[1].recorded, plan.statistics[1].recorded);
  EXPECT_EQ(again.statistics[1].momentum, 0.9);
  EXPECT_TRUE(again.parameters[again.statistics[1].variance].parameter.statistics);
  EXPECT_EQ(violations(again), "");
}

TEST(PlanFile, DigestCoversEverythingButItself) {
  Plan plan = small_plan();
  const std::string digest = plan_digest(plan);
  plan.header.digest = "something";
  EXPECT_EQ(plan_digest(plan), digest);
  plan.programs[0].steps[0].reason += "x";
  EXPECT_NE(plan_digest(plan), digest);
}

TEST(PlanFile, NamesTheField) {
  Plan plan = small_plan();
  plan.tensors[2].offset = -1;
  EXPECT_NE(refusal(serialize_plan(plan)).find("some.zplan: field tensors[2].offset"), std::string::npos) << refusal(serialize_plan(plan));
  plan = small_plan();
  plan.programs[1].steps[3].inputs[0].tensor = 100000;
  EXPECT_NE(refusal(serialize_plan(plan)).find("programs[1].steps[3].inputs.tensor"), std::string::npos);
  plan = small_plan();
  plan.header.format = 77;
  EXPECT_NE(refusal(serialize_plan(plan)).find("format"), std::string::npos);
  plan = small_plan();
  plan.units[0].weights = static_cast<Placement>(9);
  EXPECT_NE(refusal(serialize_plan(plan)).find("units[0].weights"), std::string::npos);
  EXPECT_NE(refusal("hello"), kNoError);
  EXPECT_NE(refusal(""), kNoError);
}

// Verifying and printing what still parses must end, whatever it says.
void survive(const std::string& bytes) {
  try {
    const Plan plan = parse_plan(bytes, "hostile");
    verify_plan(plan);
    dump_text(plan, -1);
    dump_dot(plan);
  } catch (const Error&) {
  }
}

TEST(PlanFile, EveryByteFlippedSurvives) {
  const std::string bytes = serialize_plan(small_plan());
  ASSERT_LT(bytes.size(), 30000u);
  for (size_t i = 0; i < bytes.size(); ++i)
    for (unsigned char mask : {0xFF, 0x01, 0x80}) {
      std::string broken = bytes;
      broken[i] = static_cast<char>(broken[i] ^ mask);
      survive(broken);
    }
}

TEST(PlanFile, RandomBytesSurvive) {
  const std::string bytes = serialize_plan(residual_plan(2, 1));
  std::mt19937_64 random(5);
  for (int n = 0; n < 1500; ++n) {
    std::string broken = bytes;
    for (uint64_t k = random() % 3 + 1; k > 0; --k) broken[random() % broken.size()] = static_cast<char>(random());
    survive(broken);
  }
}

TEST(PlanFile, EveryPrefixSurvives) {
  const std::string bytes = serialize_plan(small_plan());
  for (size_t n = 0; n < bytes.size(); n += 3) survive(bytes.substr(0, n));
}

class PlanFolder : public testing::Test {
 protected:
  TemporaryFolder folder;
};

TEST_F(PlanFolder, SaveAndLoad) {
  const Plan plan = small_plan();
  const std::string path = folder.file("a.zplan");
  save_plan(plan, path);
  save_plan(plan, path);  // over the old one
  EXPECT_EQ(serialize_plan(load_plan(path)), serialize_plan(plan));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary file stays";
}

TEST_F(PlanFolder, ErrorsNameThePath) {
  EXPECT_THROW(load_plan(folder.file("missing.zplan")), Error);
  EXPECT_THROW(load_plan(folder.path()), Error);
  EXPECT_THROW(save_plan(small_plan(), folder.file("no/such/folder.zplan")), Error);
  EXPECT_THROW(save_plan(small_plan(), folder.path()), Error);
  std::ofstream(folder.file("text.zplan")) << "not a plan";
  try {
    load_plan(folder.file("text.zplan"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("text.zplan"), std::string::npos);
  }
}

TEST_F(PlanFolder, FullDiskLeavesTheOldFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_THROW(save_plan(small_plan(), "/dev/full/x.zplan"), Error);
}

}  // namespace
}  // namespace zeroplan::test
