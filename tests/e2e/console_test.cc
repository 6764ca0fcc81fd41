// Where the program's text goes: an output that cannot be written, a terminal that is lost, names that no terminal should show.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kEndless = " --steps 1000000000 --lr 1e-6 ";

class Console : public testing::Test {
 protected:
  Console() : tiny_(tiny_mlp(2, 4), {{"x", random_tensor({8, 4}, 1)}, {"t", random_tensor({8, 4}, 2)}}) {}
  std::string command(const std::string& arguments) const { return fmt::format("{} {}", kProgram, arguments); }
  std::string train(const std::string& arguments) const {
    return command(fmt::format("train {} --data {} --batch 4 {}", tiny_.model(), tiny_.data_folder(), arguments));
  }
  std::string export_option() const { return " --export " + tiny_.file("out.onnx"); }
  bool exported() const { return std::filesystem::remove(tiny_.file("out.onnx")); }
  TinyCase tiny_;
};

TEST_F(Console, EveryCommandNoticesAFullOutput) {
  const std::string plan = tiny_.file("model.zplan");
  ASSERT_EQ(run_command(command(fmt::format("compile {} -o {} --batch 4", tiny_.model(), plan))).code, 0);
  for (const std::string& arguments :
       {std::string("--help"), std::string("--version"), std::string("estimate --params 1e9"), "estimate " + tiny_.model(),
        "inspect " + tiny_.model(), fmt::format("compile {} -o {} --batch 4", tiny_.model(), plan), "dump " + plan,
        "dump --format json " + plan, "verify " + plan, "new mlp -o " + tiny_.file("new.onnx"), "run --data synthetic --steps 2 " + plan})
    for (const char* place : {">/dev/full", ">&-"}) {
      const Outcome outcome = run_command(fmt::format("( {} {} )", command(arguments), place));
      EXPECT_EQ(outcome.code, 1) << arguments;
      EXPECT_THAT(outcome.output, HasSubstr("cannot write to the standard output")) << arguments;
    }
}

TEST_F(Console, ARunWhoseOutputFailsExportsAtOnce) {
  const Outcome full = run_command(fmt::format("( {} > /dev/full )", train(kEndless + export_option())));
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.output, AllOf(HasSubstr("No space left"), HasSubstr("the run ended after 1 step\n")));
  EXPECT_TRUE(exported());
  const Outcome pipe = run_command(fmt::format("( {} | head -n 1 )", train("--steps 200000 --lr 1e-6" + export_option())));
  EXPECT_THAT(pipe.output, AllOf(HasSubstr("Broken pipe"), HasSubstr("the run ended after")));
  EXPECT_TRUE(exported());
}

TEST_F(Console, AClosedOutputIsNoOtherFile) {
  const std::string metrics = tiny_.file("metrics.jsonl");
  run_command(fmt::format("( {} >&- )", train("--steps 3 --metrics " + metrics)));
  EXPECT_THAT(read_file(metrics), AllOf(testing::StartsWith("{\"step\": 1,"), Not(HasSubstr("step 1/"))));
}

TEST_F(Console, ALostTerminalEndsAtAStepBorder) {
  const Outcome outcome = run_and_signal(train(kEndless + export_option()), tiny_.file("m.jsonl"), "kill -HUP $!");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("stopped after"), HasSubstr("exported")));
  EXPECT_TRUE(exported());
}

TEST_F(Console, NohupKeepsTheRunGoing) {
  const Outcome outcome = run_and_signal("nohup " + train(kEndless), tiny_.file("m.jsonl"), "kill -HUP $!; sleep 0.2; kill -TERM $!");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_F(Console, OneRunPerMetricsFile) {
  const std::string metrics = tiny_.file("metrics.jsonl");
  ASSERT_EQ(run_command(train("--steps 3 --metrics " + metrics)).code, 0);
  const std::string before = read_file(metrics);
  const int other = open(metrics.c_str(), O_WRONLY);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  const Outcome refused = run_command(train("--steps 1 --metrics " + metrics));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr(fmt::format("--metrics {} is being written by another run", metrics)));
  EXPECT_EQ(read_file(metrics), before);
  close(other);
  EXPECT_EQ(run_command(train("--steps 1 --metrics " + metrics)).code, 0);
  EXPECT_LT(read_file(metrics).size(), before.size());
}

// A log that cannot be written loses nothing of what is trained, and ends with a whole line.
TEST_F(Console, ARunWhoseMetricsFailExports) {
  const Outcome full = run_command(train("--steps 3 --metrics /dev/full" + export_option()));
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.output, AllOf(HasSubstr("cannot write metrics to /dev/full: No space left on device; the run goes on"),
                                 HasSubstr("step 3/3"), HasSubstr("has no line from step 1 on")));
  EXPECT_EQ(full.output.find("cannot write metrics"), full.output.rfind("cannot write metrics"));
  EXPECT_TRUE(exported());
  const std::string metrics = tiny_.file("m.jsonl"), limit = "( trap '' XFSZ; ulimit -f 4; {} )";
  const Outcome part = run_command(fmt::format(fmt::runtime(limit), train("--steps 40 --metrics " + metrics + export_option())));
  EXPECT_EQ(part.code, 1);
  EXPECT_THAT(part.output, AllOf(HasSubstr("File too large; the run goes on"), HasSubstr("step 40/40")));
  EXPECT_THAT(read_file(metrics), AllOf(testing::StartsWith("{\"step\": 1,"), testing::EndsWith("}\n"), HasSubstr("\"step\": 2,")));
  EXPECT_TRUE(exported());
  const Outcome trace = run_command(fmt::format(fmt::runtime(limit), train("--steps 40 --trace " + metrics + export_option())));
  EXPECT_EQ(trace.code, 1);
  EXPECT_THAT(trace.output, HasSubstr(fmt::format("cannot write '{}'", metrics)));
  EXPECT_TRUE(exported());
}

TEST_F(Console, EvaluationSaysWhatItLeavesOut) {
  const std::string folder = tiny_.file("eval"), metrics = tiny_.file("metrics.jsonl");
  const TinyCase other(tiny_mlp(2, 4), {{"x", random_tensor({7, 4}, 3)}, {"t", random_tensor({7, 4}, 4)}});
  const Outcome outcome = run_command(train(fmt::format("--steps 2 --eval-data {} --metrics {}", other.data_folder(), metrics)));
  EXPECT_THAT(outcome.output, HasSubstr("(7 of 7 samples)"));
  EXPECT_THAT(read_file(metrics), HasSubstr("\"eval_samples\": 7, \"eval_samples_left_out\": 0,"));
  const TinyCase mixer(tiny_mixer(3), {{"x", random_tensor({7, 3}, 3)}});
  const std::string mixed =
      run_command(fmt::format("{0} train {1} --batch 4 --steps 1 --data {2} --eval-data {2}", kProgram, mixer.model(), mixer.data_folder()))
          .output;
  EXPECT_THAT(mixed, AllOf(HasSubstr("the last 3 samples of each epoch are left out"), HasSubstr("(4 of 7 samples)")));
  EXPECT_THAT(run_command(train("--steps 1 --eval-data " + tiny_.data_folder())).output, HasSubstr("(8 of 8 samples)"));
}

// A model whose one node has this operator and name.
TinyCase odd_model(const std::string& op, const std::string& name) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 4}).weight("w", {4}, {1, 2, 3, 4});
  model.node("Mul", {"x", "w"}, {"h"}).node(op, {"h"}, {name}).node("ReduceMean", {name}, {"loss"}, {{"keepdims", int64_t{0}}}).loss();
  return TinyCase(model);
}

TEST(Names, AreReadableAndShort) {
  const std::string odd = "b\x1b[31m\xff\xc2\x9b\xe2\x82 \xc3\xa9";
  const TinyCase strange = odd_model(odd, "y"), endless = odd_model("Unknown", std::string(10000, 'y') + "_end");
  const std::string said = run_command(fmt::format("{} compile {} -o {}.zplan", kProgram, strange.model(), strange.model())).output;
  EXPECT_THAT(said, AllOf(HasSubstr("b\\x1B[31m\\xFF\\xC2\\x9B\\xE2\\x82 \xc3\xa9"), Not(HasSubstr("\x1b"))));
  const std::string cut = run_command(fmt::format("{} compile {} -o {}.zplan", kProgram, endless.model(), endless.model())).output;
  EXPECT_THAT(cut, AllOf(HasSubstr("yyy…yyy"), HasSubstr("_end"), HasSubstr("Unknown")));
  EXPECT_LT(cut.size(), 2000u);
}

}  // namespace
}  // namespace zeroplan
