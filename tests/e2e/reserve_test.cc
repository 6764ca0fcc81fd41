// The printed memory table against the process: its peak, divided by the ranks.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "base/npy.h"
#include "base/temporary_folder.h"
#include "tests/paths/paths.h"
#include "tests/sanitized.h"

namespace zeroplan {
namespace {

struct Child {
  int code = -1;
  int64_t peak_bytes = 0;
  std::string output;
};

// Runs the program with these arguments and waits for it.
Child run_program(std::vector<std::string> arguments, const std::string& log) {
  arguments.insert(arguments.begin(), kProgram);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, 1);
    dup2(file, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, static_cast<int64_t>(usage.ru_maxrss) * 1024, text.str()};
}

int64_t printed(const std::string& output, const std::string& row) {
  int64_t bytes = 0;
  EXPECT_TRUE(RE2::PartialMatch(output, "\n  " + row + " +(\\d+)", &bytes)) << row << "\n" << output;
  return bytes;
}

enum class Feed : uint8_t { synthetic, tokens, npy };

struct Setting {
  const char* model;
  int ranks, stage;
  const char* precision;
  Feed feed;
  bool eval = false;
  int threads = 1;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << fmt::format("{}, {} ranks, stage {}, {}, {} threads, feed {}{}", s.model, s.ranks, s.stage, s.precision, s.threads,
                      static_cast<int>(s.feed), s.eval ? ", eval" : "");
}

class Reserve : public testing::TestWithParam<Setting> {
 protected:
  std::string file(const char* name) const { return folder_.file(name); }

  // 64 samples of 64 tokens, or what the steps of the other models read.
  std::vector<std::string> data(bool eval) const {
    constexpr int64_t kSamples = 64, kTokens = 64;
    if (GetParam().feed == Feed::synthetic) return {"--data", "synthetic"};
    if (GetParam().feed == Feed::tokens) {
      std::ofstream(file("tokens"), std::ios::binary) << std::string(kSamples * kTokens + 1, 'a');
      std::vector<std::string> arguments = {"--tokens", file("tokens")};
      if (eval) arguments.insert(arguments.end(), {"--eval-fraction", "0.25", "--eval-every", "2"});
      return arguments;
    }
    for (const char* name : {"idx.npy", "target.npy"}) write_npy(file(name), HostTensor(DType::i64, {kSamples, kTokens}));
    std::vector<std::string> arguments = {"--data", folder_.path()};
    if (eval) arguments.insert(arguments.end(), {"--eval-data", folder_.path(), "--eval-every", "2"});
    return arguments;
  }

  TemporaryFolder folder_;
};

TEST_P(Reserve, ProcessStaysWithinArenasAndReserve) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is no part of the plan";
  const Setting& s = GetParam();
  ASSERT_EQ(run_program({"new", s.model, "-o", file("model.onnx")}, file("log")).code, 0);
  std::vector<std::string> arguments = {"train",       file("model.onnx"),
                                        "--ranks",     std::to_string(s.ranks),
                                        "--stage",     std::to_string(s.stage),
                                        "--threads",   std::to_string(s.threads),
                                        "--batch",     std::to_string(2 * s.ranks),
                                        "--precision", s.precision,
                                        "--steps",     "4"};
  const std::vector<std::string> feed = data(s.eval);
  arguments.insert(arguments.end(), feed.begin(), feed.end());
  const Child run = run_program(arguments, file("log"));
  ASSERT_EQ(run.code, 0) << run.output;
  const int64_t arenas = printed(run.output, "sum"), reserve = printed(run.output, "reserve outside the arenas");
  const int64_t outside = run.peak_bytes / s.ranks - arenas;
  EXPECT_LE(outside, reserve) << run.output;
  EXPECT_GE(outside, reserve / 5) << "a reserve of nothing but air\n" << run.output;
}

std::vector<Setting> settings() {
  std::vector<Setting> list;
  for (const char* precision : {"fp32", "fp64"})
    for (const int ranks : {1, 2, 4})
      for (const int stage : {0, 1, 2, 3}) {
        list.push_back({"gpt2-nano", ranks, stage, precision, Feed::tokens, stage % 2 == 0});
        list.push_back({"gpt2-nano", ranks, stage, precision, Feed::npy, stage % 2 == 1});
      }
  list.push_back({"gpt2-mini", 2, 3, "fp32", Feed::synthetic});
  list.push_back({"gpt2-mini", 1, 3, "fp32", Feed::synthetic});
  list.push_back({"gpt2-mini", 1, 0, "fp32", Feed::synthetic, false, 2});
  list.push_back({"gpt2-mini", 2, 1, "fp64", Feed::synthetic});
  return list;
}

INSTANTIATE_TEST_SUITE_P(Models, Reserve, testing::ValuesIn(settings()));

}  // namespace
}  // namespace zeroplan
