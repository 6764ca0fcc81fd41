// The program's refusals: the exit code, and that the message names what was typed and what may stand there.
#include <algorithm>
#include <limits>

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

class CommandLine : public testing::Test {
 protected:
  CommandLine() : tiny_(tiny_mlp(2, 4), {{"x", random_tensor({8, 4}, 1)}, {"t", random_tensor({8, 4}, 2)}}) {}
  std::string train_command(const std::string& arguments) const {
    const bool has_batch = arguments.find("--batch") != std::string::npos;
    return fmt::format("{} train {} --data {} {} {}", kProgram, tiny_.model(), tiny_.data_folder(), has_batch ? "" : "--batch 4",
                       arguments);
  }
  Outcome train(const std::string& arguments) const { return run_command(train_command(arguments)); }
  TinyCase tiny_;
};

struct T33 : CommandLine {};

TEST_F(T33, MisspeltKeysSuggestTheNearest) {
  for (const auto& [typed, meant] : {std::pair{"--rank 2", "--ranks"},
                                     {"--stpes 2", "--steps"},
                                     {"--prefech 1", "--prefetch"},
                                     {"--unit-byte 10", "--unit-bytes"},
                                     {"--weight_decay 0", "--weight-decay"},
                                     {"--learning-rate 1", "--help"}}) {
    const Outcome outcome = train(typed);
    EXPECT_EQ(outcome.code, 2) << typed;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(std::string(typed).substr(0, std::string(typed).find(' '))), HasSubstr(meant)));
  }
  EXPECT_EQ(run_command(fmt::format("{} trian", kProgram)).code, 2);
  EXPECT_THAT(run_command(fmt::format("{} trian", kProgram)).output, HasSubstr("train"));
}

TEST_F(T33, ValuesOutOfRangeNameKeyValueAndRange) {
  for (const auto& [key, value] : {std::pair{"--ranks", "0"},
                                   {"--ranks", "-1"},
                                   {"--stage", "4"},
                                   {"--stage", "-1"},
                                   {"--micro-batches", "-1"},
                                   {"--threads", "0"},
                                   {"--prefetch", "-1"},
                                   {"--unit-bytes", "-1"},
                                   {"--reduce-bytes", "-1"},
                                   {"--lr", "0"},
                                   {"--lr", "-1"},
                                   {"--lr", "1e30"},
                                   {"--eps", "0"},
                                   {"--clip", "-1"},
                                   {"--clip", "1e30"},
                                   {"--weight-decay", "-1"},
                                   {"--weight-decay", "1e30"},
                                   {"--betas", "1,0.9"},
                                   {"--betas", "0.9"},
                                   {"--warmup", "-1"},
                                   {"--steps", "-1"},
                                   {"--schedule", "step"},
                                   {"--optimizer", "lion"},
                                   {"--precision", "int8"},
                                   {"--dim", "k=0"},
                                   {"--dim", "k=auto"},
                                   {"--sample-axis", "x=auto"}}) {
    const Outcome outcome = train(fmt::format("{} {}", key, value));
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << key << " " << value << ": " << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(key));
    EXPECT_THAT(outcome.output, HasSubstr(std::string(value).substr(0, 3) == "1e3" ? "1e+30" : std::string(value).substr(0, 1)));
    EXPECT_THAT(outcome.output, testing::AnyOf(HasSubstr("must be"), HasSubstr("is neither"), HasSubstr("is not a whole number")))
        << key << " " << value;
  }
}

TEST_F(T33, ValuesInAnotherForm) {
  for (const auto& [key, value] : {std::pair{"--seed", "-1"},
                                   {"--seed", "0x10"},
                                   {"--steps", "010"},
                                   {"--steps", "+1"},
                                   {"--steps", "99999999999999999999"},
                                   {"--lr", "0x1"},
                                   {"--lr", "1e-3x"},
                                   {"--betas", "0x1p-1,0.5"},
                                   {"--lr", "''"},
                                   {"--loss", "''"},
                                   {"--unit", "''"},
                                   {"--dim", "''"},
                                   {"--ranks", "''"},
                                   {"--metrics", "''"},
                                   {"--export", "''"},
                                   {"--optimizer", "''"}}) {
    const Outcome outcome = train(fmt::format("{} {}", key, value));
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << key << " " << value << ": " << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(fmt::format("{} {}: ", key, value)));
    EXPECT_THAT(outcome.output, testing::AnyOf(HasSubstr("must be"), HasSubstr("must not be empty"), HasSubstr("is too large")));
  }
  EXPECT_THAT(train("--seed= --shuffle").output, HasSubstr("--seed= has no value"));
  EXPECT_EQ(train("--steps 1 --seed 18446744073709551615 --lr 1e-3").code, 0);
}

TEST_F(T33, ManyRanksAreCompiledButNotRun) {
  const auto refused = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("--ranks 1025"), HasSubstr("1024 at most")));
  };
  const std::string plan = tiny_.file("many.zplan");
  refused(train("--ranks 1025 --micro-batches 4"));
  ASSERT_EQ(run_command(fmt::format("{} compile {} -o {} --ranks 1025 --batch 4 --micro-batches 4", kProgram, tiny_.model(), plan)).code,
            0);
  refused(run_command(fmt::format("{} run {} --data {}", kProgram, plan, tiny_.data_folder())));
}

// What is no number at all, or none that fits.
TEST_F(T33, ValuesThatAreNoNumbers) {
  for (const char* key :
       {"--ranks", "--batch", "--stage", "--micro-batches", "--prefetch", "--unit-bytes", "--reduce-bytes", "--steps", "--lr", "--clip"})
    for (const char* value : {"auto", "1e30"}) {
      if (std::string(value) == "1e30" && (std::string(key) == "--lr" || std::string(key) == "--clip")) continue;
      const Outcome outcome = train(fmt::format("{} {}", key, value));
      EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << key << " " << value << ": " << outcome.output;
      EXPECT_THAT(outcome.output, AllOf(HasSubstr(key), HasSubstr(value)));
    }
}

TEST_F(T33, BatchesThatDoNotDivide) {
  const Outcome outcome = train("--micro-batches 3");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("--batch 4"), HasSubstr("3 micro-batches")));
}

TEST_F(T33, OptionsOfLaterAreRefusedByName) {
  for (const char* option : {"--resume DIR", "--save DIR", "--save-every 3", "--recompute"}) {
    const Outcome outcome = train(option);
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << option << ": " << outcome.output;
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr(std::string(option).substr(0, std::string(option).find(' '))), HasSubstr("not available yet")));
  }
  for (const char* command : {"diff", "simulate", "export"}) {
    const Outcome outcome = run_command(fmt::format("{} {} a.zplan", kProgram, command));
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(command), HasSubstr("not available yet")));
  }
}

TEST_F(T33, FastReductionsAreOfGpus) {
  const Outcome fast = train("--reduce fast"), other = train("--reduce slow");
  EXPECT_EQ(fast.code, 1) << fast.output;
  EXPECT_THAT(fast.output, AllOf(HasSubstr("--reduce fast"), HasSubstr("--device cuda")));
  EXPECT_EQ(other.code, 1) << other.output;
  EXPECT_THAT(other.output, HasSubstr("--reduce slow: must be ordered or fast"));
}

TEST_F(CommandLine, ABuildWithoutCudaSaysSo) {
  const Outcome outcome = train("--device cuda");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("built without CUDA"), HasSubstr("--device cpu")));
}

TEST_F(CommandLine, TrainsAndExports) {
  const Outcome outcome =
      train(fmt::format("--ranks 2 --steps 4 --lr 0.01 --metrics {} --export {}", tiny_.file("metrics.jsonl"), tiny_.file("out.onnx")));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const std::string metrics = read_file(tiny_.file("metrics.jsonl"));
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 4) << metrics;
  for (const char* field : {"\"step\"", "\"loss\"", "\"grad_norm\"", "\"lr\"", "\"step_ms\"", "\"arena_bytes\"", "\"arena_high_water\""})
    EXPECT_THAT(metrics, HasSubstr(field));
  EXPECT_EQ(compile(tiny_.file("out.onnx"), sgd_compile(4)).parameters.size(), 4u);
}

// A step has one number, whoever names it.
TEST_F(CommandLine, StepsCountFromOneEverywhere) {
  HostTensor x = random_tensor({12, 4}, 1);
  x.set(9 * 4, std::numeric_limits<double>::quiet_NaN());  // in the third batch
  tiny_.write("x", x);
  tiny_.write("t", random_tensor({12, 4}, 2));
  const Outcome outcome = train(fmt::format("--steps 3 --metrics {}", tiny_.file("metrics.jsonl")));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("step 1/3"), HasSubstr("step 2/3"), HasSubstr("(step 3)")));
  EXPECT_THAT(read_file(tiny_.file("metrics.jsonl")), AllOf(testing::StartsWith("{\"step\": 1,"), HasSubstr("\n{\"step\": 2,")));
  tiny_.write("x", random_tensor({12, 4}, 1));
  ASSERT_EQ(train(fmt::format("--steps 2 --trace {}", tiny_.file("trace.json"))).code, 0);
  EXPECT_THAT(read_file(tiny_.file("trace.json")),
              AllOf(HasSubstr("\"step\":1"), HasSubstr("\"step\":2"), testing::Not(HasSubstr("\"step\":3"))));
}

TEST_F(CommandLine, CompileThenRunEqualsTrain) {
  const std::string plan = tiny_.file("model.zplan");
  const Outcome compiled = run_command(fmt::format("{} compile {} -o {} --ranks 2 --batch 4", kProgram, tiny_.model(), plan));
  ASSERT_EQ(compiled.code, 0) << compiled.output;
  EXPECT_EQ(run_command(fmt::format("{} verify {}", kProgram, plan)).code, 0);
  const Outcome ran =
      run_command(fmt::format("{} run {} --data {} --steps 3 --export {}", kProgram, plan, tiny_.data_folder(), tiny_.file("a.onnx")));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(train("--ranks 2 --steps 3 --export " + tiny_.file("b.onnx")).code, 0);
  EXPECT_TRUE(read_file(tiny_.file("a.onnx")) == read_file(tiny_.file("b.onnx")));
}

TEST_F(CommandLine, APlanRunsFromAnyFolder) {
  const std::string folder = tiny_.file(""), rest = fmt::format(" --data {} --steps 1", tiny_.data_folder());
  const auto in = [&](const std::string& place, const std::string& arguments) {
    return run_command(fmt::format("mkdir -p {0}/a {0}/b/deep {0}/c/deep; cd {0}/{1} && {2} {3}", folder, place, kProgram, arguments));
  };
  EXPECT_EQ(in(".", "compile model.onnx -o beside.zplan --batch 4").code, 0);
  EXPECT_EQ(in("a", "compile ../model.onnx -o ../b/deep/apart.zplan --batch 4").code, 0);
  for (const char* plan : {"../../beside.zplan", "../../b/deep/apart.zplan"}) {
    const Outcome ran = in("c/deep", "run " + (plan + rest) + " --export out.onnx");
    EXPECT_EQ(ran.code, 0) << ran.output;
  }
  EXPECT_EQ(run_command(fmt::format("cd {0} && mkdir moved && mv model.onnx beside.zplan moved", folder)).code, 0);
  const Outcome moved = in("c/deep", "run ../../moved/beside.zplan" + rest);
  EXPECT_EQ(moved.code, 0) << moved.output;
}

TEST_F(CommandLine, InterruptEndsAtAStepBorder) {
  const std::string command = train_command("--ranks 2 --steps 1000000000 --lr 1e-6 --export " + tiny_.file("stopped.onnx"));
  const Outcome outcome = run_and_signal(command, tiny_.file("m.jsonl"), "kill -INT $!");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("stopped after"));
  EXPECT_EQ(compile(tiny_.file("stopped.onnx"), sgd_compile(4)).parameters.size(), 4u);
}

TEST_F(CommandLine, DataErrorsNameTheFile) {
  tiny_.write("x", random_tensor({8, 5}, 1));
  const Outcome outcome = train("--steps 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("x.npy"), HasSubstr("[8,5]"), HasSubstr("[samples,4]")));
}

TEST_F(CommandLine, CheckNanNamesTheNode) {
  HostTensor x = random_tensor({8, 4}, 1);
  x.set(9, std::numeric_limits<double>::infinity());
  tiny_.write("x", x);
  const Outcome plain = train("--steps 1"), named = train("--steps 1 --check-nan");
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.output, AllOf(HasSubstr("not finite"), HasSubstr("step 1")));
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.output, AllOf(HasSubstr("NaN or Inf"), HasSubstr("node_layers.0")));
}

}  // namespace
}  // namespace zeroplan
