// The printed memory table against the process: peak above its own start, divided by the ranks.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

namespace zeroplan {
namespace {

struct Child {
  int code = -1;
  int64_t peak_bytes = 0;
  std::string output;
};

// Runs the program with these arguments and waits for it.
Child run_program(std::vector<std::string> arguments, const std::string& log) {
  arguments.insert(arguments.begin(), ZEROPLAN_BINARY);
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

class Reserve : public testing::TestWithParam<std::tuple<const char*, int, int>> {};  // model, ranks, threads

TEST_P(Reserve, ProcessStaysWithinArenasAndReserve) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory is no part of the plan";
#endif
  const auto [name, ranks, threads] = GetParam();
  const std::string base = testing::TempDir() + fmt::format("reserve_{}_{}_{}", name, ranks, threads), model = base + ".onnx", log = base + ".log";
  ASSERT_EQ(run_program({"new", name, "-o", model}, log).code, 0);
  const int64_t start = run_program({"--version"}, log).peak_bytes;
  const Child run = run_program({"train", model, "--ranks", std::to_string(ranks), "--threads", std::to_string(threads), "--batch",
                                 std::to_string(2 * ranks), "--data", "synthetic", "--steps", "3"}, log);
  ASSERT_EQ(run.code, 0) << run.output;
  const int64_t planned = printed(run.output, "sum") + printed(run.output, "reserve outside the arenas");
  EXPECT_LE((run.peak_bytes - start) / ranks, planned) << run.output;
  unlink(model.c_str());
  unlink(log.c_str());
}

INSTANTIATE_TEST_SUITE_P(Models, Reserve,
                         testing::Values(std::tuple("gpt2-nano", 1, 1), std::tuple("gpt2-nano", 4, 1), std::tuple("gpt2-mini", 2, 1),
                                         std::tuple("gpt2-mini", 1, 2)));

}  // namespace
}  // namespace zeroplan
