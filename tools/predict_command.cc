#include <filesystem>

#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "base/npy.h"
#include "base/type_name.h"
#include "runtime/cuda/cuda_backend.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/open_files.h"
#include "tools/output_files.h"
#include "tools/run_arguments.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string model, data, output_folder;
  std::vector<std::string> outputs;
  CompileArguments compile;
};

std::string output_file(const std::string& folder, const std::string& output) {
  return (std::filesystem::path(folder) / npy_file_name(output)).string();
}

void check_output_files(const Plan& plan, const Arguments& arguments) {
  std::vector<NamedFile> files, inputs = data_files(arguments.data);
  for (const PlanOutput& output : plan.outputs)
    files.push_back({"the file of output " + output.name, output_file(arguments.output_folder, output.name)});
  inputs.push_back({"the model", arguments.model});
  check_outputs(files, inputs);
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(fmt::format("--output-folder {}: it cannot be made: {}", path, error.message()));
}

void run(const Arguments& arguments) {
  CompileOptions options = arguments.compile.finish();
  check_local_ranks(options.ranks, "--ranks");
  if (options.device == DeviceKind::cuda) require_gpu();
  const ModelFile model = open_model(arguments.model);
  options.outputs = arguments.outputs.empty() ? model.output_names() : arguments.outputs;
  options.inference = true;
  const Plan plan = compile(model, options);
  make_folder(arguments.output_folder);
  check_output_files(plan, arguments);
  const std::unique_ptr<DataSource> data = open_npy_folder(arguments.data, plan);
  const std::unique_ptr<Executor> executor = make_executor(plan, {}, model.weights());
  for (const auto& [name, values] : predict(*executor, *data)) {
    const std::string path = output_file(arguments.output_folder, name);
    write_npy(path, values);
    say("wrote {}: {} {}\n", path, type_name(values.dtype()), to_string(values.shape()));
  }
}

}  // namespace

void add_predict_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", "the outputs of a model on data, in inference mode");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx")->required();
  command->add_option("--data", arguments->data, "folder with NAME.npy per input, samples on the first axis")->required();
  command->add_option("-o,--output-folder", arguments->output_folder, "folder for NAME.npy per output")->required();
  command->add_option("--output", arguments->outputs, "this output alone; may be given again")->take_all();
  arguments->compile.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
