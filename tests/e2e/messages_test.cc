// What a newcomer sees who gives the wrong file, value or place: the message names it and the way out, before any long work.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_run.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Outcome zeroplan(const std::string& arguments) { return run_command(std::string(kProgram) + " " + arguments); }

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class Messages : public testing::Test {
 protected:
  Messages() : tiny_(tiny_mlp(2, 4), {{"x", random_tensor({8, 4}, 1)}, {"t", random_tensor({8, 4}, 2)}}) {
    EXPECT_EQ(zeroplan(fmt::format("compile {} -o {} --batch 4", tiny_.model(), plan())).code, 0);
  }
  std::string plan() const { return tiny_.file("model.zplan"); }
  std::string refusal(const std::string& arguments) const {
    const Outcome outcome = zeroplan(arguments);
    EXPECT_NE(outcome.code, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  std::string train_refusal(const std::string& arguments) const {
    const bool has_batch = arguments.find("--batch") != std::string::npos;
    return refusal(fmt::format("train {} {} {}", tiny_.model(), has_batch ? "" : "--batch 4", arguments));
  }
  TinyCase tiny_;
};

TEST_F(Messages, FilesThatAreNoModel) {
  const std::string whole = read_file(tiny_.model());
  write_text(tiny_.file("empty"), "");
  write_text(tiny_.file("cut"), whole.substr(0, whole.size() / 2));
  for (const char* command : {"inspect", "compile -o out.zplan", "estimate"}) {
    const auto says = [&](const std::string& file, const char* what, const char* way_out) {
      EXPECT_THAT(refusal(fmt::format("{} {}", command, file)), AllOf(HasSubstr(file), HasSubstr(what), HasSubstr(way_out)));
    };
    says(tiny_.file("empty"), "the file is empty", "export or copy it again");
    says(tiny_.file("cut"), "not a valid ONNX model", "again");
    says(plan(), "is a plan, not a model", "zeroplan run");
    says(tiny_.data_folder(), "is a folder", "give the name of a file");
    says(tiny_.file("none"), "No such file", "check the name");
  }
}

TEST_F(Messages, FilesThatAreNoPlan) {
  const std::string whole = read_file(plan());
  write_text(tiny_.file("empty"), "");
  write_text(tiny_.file("cut"), whole.substr(0, whole.size() / 2));
  for (const char* command : {"dump", "verify", "run --data synthetic --steps 1"}) {
    const auto says = [&](const std::string& file, const char* what, const char* way_out) {
      EXPECT_THAT(refusal(fmt::format("{} {}", command, file)), AllOf(HasSubstr(file), HasSubstr(what), HasSubstr(way_out)));
    };
    says(tiny_.file("empty"), "the file is empty", "compile the model again");
    says(tiny_.file("cut"), "not a zeroplan plan", "compile the model again");
    says(tiny_.model(), "is an ONNX model, not a plan", "zeroplan compile");
    says(tiny_.data_folder(), "is a folder", "give the plan's file");
    says(tiny_.file("none"), "No such file", "check the name");
  }
}

TEST_F(Messages, TheModelOfAPlanIsMissing) {
  std::filesystem::remove(tiny_.model());
  EXPECT_THAT(refusal("run --data synthetic --steps 1 " + plan()),
              AllOf(HasSubstr(plan()), HasSubstr(tiny_.model()), HasSubstr("put it back")));
}

TEST_F(Messages, ExternalDataThatIsMissing) {
  std::filesystem::copy_file(model_folder("gpt2_nano_logits") + "/model.onnx", tiny_.file("alone.onnx"));
  EXPECT_THAT(refusal("inspect " + tiny_.file("alone.onnx")),
              AllOf(HasSubstr("'model.onnx.data' is missing"), HasSubstr("must lie beside the model")));
}

TEST_F(Messages, ValuesSayWhatTheyMayBe) {
  EXPECT_THAT(refusal("estimate --params 7B"), AllOf(HasSubstr("--params 7B"), HasSubstr("7.5e9"), HasSubstr("1 to 1e15")));
  EXPECT_THAT(train_refusal("--data synthetic --ranks auto"),
              AllOf(HasSubstr("--ranks auto"), HasSubstr("whole number"), HasSubstr("1 to 65536")));
  EXPECT_THAT(refusal(fmt::format("estimate {} --ranks auto", tiny_.model())), AllOf(HasSubstr("--ranks auto"), HasSubstr("1 to 65536")));
  EXPECT_THAT(train_refusal("--data synthetic --steps 1e30"),
              AllOf(HasSubstr("--steps 1e30"), HasSubstr("in digits"), HasSubstr("1 or more")));
  EXPECT_THAT(train_refusal("--data synthetic --batch 4 --batch 8"), HasSubstr("--batch is given 2 times; give it once"));
  for (const std::string option : {"--batch", "--micro-batches", "--steps", "--epochs"})
    EXPECT_THAT(train_refusal(fmt::format("--data {} {} 0", tiny_.data_folder(), option)),
                HasSubstr(option + " 0: must be 1 or more; leave it out for the default"));
  EXPECT_THAT(train_refusal("--data synthetic --batch -3"), HasSubstr("--batch -3: must be from 1 to"));
  EXPECT_THAT(refusal("new gpt2-nano --batch 0 -o " + tiny_.file("new.onnx")), HasSubstr("--batch 0: must be 1 or more"));
}

// The batch is what the stated axis has fixed, not what the first axis has.
TEST_F(Messages, AFixedBatchOnTheStatedAxis) {
  const std::string model = tiny_.file("fixed.onnx");
  TinyModel fixed;
  fixed.input("x", DType::f32, {4, 6}).weight("w", {6}, {1, 2, 3, 4, 5, 6});
  fixed.node("Mul", {"x", "w"}, {"h"}).node("ReduceMean", {"h"}, {"loss"}, {{"keepdims", int64_t{0}}}).loss().save(model);
  const std::string compile = fmt::format("compile {} -o {} ", model, tiny_.file("fixed.zplan"));
  EXPECT_THAT(zeroplan(compile + "--sample-axis x=1").output, HasSubstr("batch 6 in 1 micro-batch, 1 rank,"));
  EXPECT_THAT(refusal(compile + "--sample-axis x=1 --batch 1"),
              AllOf(HasSubstr("fixed batch of 6"), HasSubstr("in 1 micro-batch gives 1 sample each")));
}

// Before the memory table, and before the compile where the folder is not even there.
TEST_F(Messages, DataIsCheckedFirst) {
  const auto early = [&](const std::string& arguments, const std::string& what) {
    EXPECT_THAT(train_refusal(arguments), AllOf(HasSubstr(what), Not(HasSubstr("transient")), Not(HasSubstr("micro-batches,"))));
  };
  early("--steps 1 --data " + tiny_.file("none"), "does not exist");
  early("--steps 1 --data " + tiny_.model(), "is a file; give the folder");
  early("--steps 1 --tokens " + tiny_.file("none"), "No such file");
  const std::string data = " --steps 1 --data " + tiny_.data_folder();
  early("--no-decay nothing" + data, "nothing");
  early("--eval-data " + tiny_.file("none") + data, "does not exist");
  tiny_.write("x", HostTensor::of(DType::i64, {8, 4}, std::vector<int64_t>(32, 1)));
  early(data, "x.npy holds int64, the model's input x is float32");
  tiny_.write("x", random_tensor({8, 5}, 1));
  early(data, "[samples,4]");
  std::filesystem::remove(tiny_.data_folder() + "/x.npy");
  std::filesystem::create_symlink("x.npy", tiny_.data_folder() + "/x.npy");
  early(data, "x.npy': Too many levels");
}

TEST_F(Messages, OutputsNeverOverwriteInputs) {
  std::filesystem::create_symlink("model.onnx", tiny_.file("link.onnx"));
  std::filesystem::create_hard_link(tiny_.model(), tiny_.file("hard.onnx"));
  const std::string model = read_file(tiny_.model()), zplan = read_file(plan()), x = read_file(tiny_.data_folder() + "/x.npy");
  const std::string data = fmt::format(" --data {} --steps 1 ", tiny_.data_folder());
  for (const std::string option : {"--export ", "--metrics ", "--trace "}) {
    for (const std::string& file : {tiny_.model(), tiny_.file("data/../model.onnx"), tiny_.file("link.onnx"), tiny_.file("hard.onnx")}) {
      EXPECT_THAT(train_refusal(data + option + file), AllOf(HasSubstr(option + file), HasSubstr("would overwrite the model")));
      EXPECT_THAT(refusal("run " + plan() + data + option + file), HasSubstr("would overwrite the model"));
    }
    EXPECT_THAT(refusal("run " + plan() + data + option + plan()), HasSubstr("would overwrite the plan"));
    EXPECT_THAT(train_refusal(data + option + tiny_.data_folder() + "/x.npy"), HasSubstr("would overwrite a data file"));
    EXPECT_THAT(train_refusal(data + option + tiny_.file("none/out")), HasSubstr("does not exist; create it first"));
  }
  EXPECT_THAT(refusal(fmt::format("compile {} -o {}", tiny_.model(), tiny_.file("hard.onnx"))), HasSubstr("would overwrite the model"));
  EXPECT_THAT(train_refusal(data + fmt::format("--metrics {0} --trace {0}", tiny_.file("a"))), HasSubstr("name the same file"));
  EXPECT_TRUE(model == read_file(tiny_.model()) && zplan == read_file(plan()) && x == read_file(tiny_.data_folder() + "/x.npy"));
}

// A metrics file alone is written line by line; all else would be refused when the work is done.
TEST_F(Messages, DevicesAreRefusedFirst) {
  ASSERT_EQ(mkfifo(tiny_.file("pipe").c_str(), 0600), 0);
  const std::string data = fmt::format(" --data {} --steps 1 ", tiny_.data_folder());
  for (const std::string& place : {std::string("/dev/null"), std::string("/dev/full"), tiny_.file("pipe")}) {
    const auto refused = [&](const std::string& option) { return HasSubstr(option + place + " is a pipe or a device; give a file name"); };
    for (const std::string option : {"--export ", "--trace "})
      EXPECT_THAT(train_refusal(data + option + place), AllOf(refused(option), Not(HasSubstr("transient")), Not(HasSubstr("step 1/1"))));
    EXPECT_THAT(refusal(fmt::format("compile {} -o {}", tiny_.model(), place)), refused("-o "));
    EXPECT_THAT(refusal(fmt::format("compile {} -o {} --emit-onnx {}", tiny_.model(), plan(), place)), refused("--emit-onnx "));
    EXPECT_THAT(refusal("new mlp -o " + place), refused("-o "));
  }
  EXPECT_EQ(zeroplan(fmt::format("train {} --batch 4 {} --metrics /dev/null", tiny_.model(), data)).code, 0);
}

TEST_F(Messages, TheExportNamesItsWeightsFile) {
  const std::string folder = model_folder("gpt2_nano_logits"), out = tiny_.file("out.onnx");
  const std::string command = fmt::format(
      "train {0}/model.onnx --loss 'softmax_cross_entropy(logits, labels)' --dim seq=16 --data synthetic --steps 1 --export ", folder);
  const Outcome outcome = zeroplan(command + out);
  EXPECT_THAT(outcome.output, HasSubstr(fmt::format("exported {} and its weights {}", out, tiny_.file("model.onnx.data"))));
  // A link of that name is replaced, not what it leads to; beside the original the weights are files of their own.
  const std::string weights = folder + "/model.onnx.data", before = read_file(weights);
  std::filesystem::remove(tiny_.file("model.onnx.data"));
  std::filesystem::create_symlink(weights, tiny_.file("model.onnx.data"));
  EXPECT_EQ(zeroplan(command + tiny_.file("other.onnx")).code, 0);
  EXPECT_TRUE(read_file(weights) == before);
  const std::string copy = tiny_.file("copy");
  std::filesystem::create_directory(copy);
  for (const char* name : {"model.onnx", "model.onnx.data"}) std::filesystem::copy_file(folder + "/" + name, copy + "/" + name);
  const Outcome beside = zeroplan("train " + copy + command.substr(std::string("train ").size() + folder.size()) + copy + "/other.onnx");
  EXPECT_TRUE(read_file(copy + "/model.onnx.data") == before) << beside.output;
}

TEST_F(Messages, TheOpsetIsNamedByInspectAlone) {
  EXPECT_THAT(zeroplan("inspect " + tiny_.model()).output, HasSubstr("opset 18, read as opset 21"));
  EXPECT_THAT(zeroplan(fmt::format("compile {} -o {}", tiny_.model(), plan())).output, Not(HasSubstr("opset")));
}

TEST_F(Messages, ATraceSaysWhatIsInIt) {
  const std::string start = fmt::format("run {} --data synthetic --steps 4 --trace {} ", plan(), tiny_.file("trace.json"));
  EXPECT_THAT(zeroplan(start).output, HasSubstr("steps 1 to 4 of 4\n"));
  EXPECT_THAT(zeroplan(start + "--trace-steps 2").output, HasSubstr("steps 1 to 2 of 4, as --trace-steps says"));
  EXPECT_THAT(read_file(tiny_.file("trace.json")), AllOf(HasSubstr("\"step\":2"), Not(HasSubstr("\"step\":3"))));
}

// A model that was compiled here is not read for its digest again, unless it has changed since.
TEST(ModelFiles, AreReadOnce) {
  const TinyCase tiny(tiny_mlp(1, 4));
  const ModelFile file(tiny.model());
  const Plan plan = compile(file, sgd_compile(4));
  const auto time = std::filesystem::last_write_time(tiny.model());
  std::string bytes = read_file(tiny.model());
  const float weight = static_cast<float>(all_weights(*make_executor(plan)).begin()->second.get(0));
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&weight), sizeof weight));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  std::ofstream(tiny.model(), std::ios::binary) << bytes;
  EXPECT_THAT(error_of([&] { make_executor(plan, {}, file.weights()); }), HasSubstr("is not the model"));
  std::filesystem::last_write_time(tiny.model(), time);
  const ModelFile again(tiny.model());
  const Plan second = compile(again, sgd_compile(4));
  bytes[at] ^= 1;
  std::ofstream(tiny.model(), std::ios::binary) << bytes;
  std::filesystem::last_write_time(tiny.model(), time);
  EXPECT_EQ(error_of([&] { make_executor(second, {}, again.weights()); }), "no error");
  EXPECT_THAT(error_of([&] { make_executor(second); }), HasSubstr("is not the model"));
}

}  // namespace
}  // namespace zeroplan
