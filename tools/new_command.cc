#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "tools/architectures/model_writer.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/option_values.h"
#include "tools/output_files.h"

namespace zeroplan {
namespace {

constexpr int kOpset = 20;  // the first with Gelu

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void run(const CLI::App& command, const NewOptions& options) {
  if (const std::vector<std::string> zeros = given_as_zero(command, {"--layers", "--context", "--batch"}); !zeros.empty())
    throw Error(zeros[0]);
  if (options.layers < 0 || options.layers > 1024) throw Error(fmt::format("--layers {}: must be from 1 to 1024", options.layers));
  if (options.layers > 0 && options.size == "mlp") throw Error("--layers: the layers of mlp are fixed");
  if (options.context < 0 || options.context > (1 << 20))
    throw Error(fmt::format("--context {}: must be from 1 to {}", options.context, 1 << 20));
  if (options.batch < 0 || options.batch > (1 << 20)) throw Error(fmt::format("--batch {}: must be from 1 to {}", options.batch, 1 << 20));
  check_outputs({{"-o", options.output}}, {});
  ModelWriter writer(options.size, kOpset);
  if (options.size == "mlp")
    build_mlp(writer, options);
  else if (contains(gpt2_sizes(), options.size))
    build_gpt2(writer, options);
  else if (contains(llama_sizes(), options.size))
    build_llama(writer, options);
  else
    throw Error(fmt::format("there is no model '{}'; choose mlp, {}, {}", options.size, fmt::join(gpt2_sizes(), ", "),
                            fmt::join(llama_sizes(), ", ")));
  const int64_t parameters = writer.save(options);
  say("wrote {}: {} parameters{}\n", options.output, parameters, options.weights ? "" : ", without weights");
}

}  // namespace

void add_new_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("new", "write a standard architecture as ONNX, with seeded weights");
  auto options = std::make_shared<NewOptions>();  // shared with the callback, which outlives this function
  command->add_option("size", options->size, "mlp, gpt2-nano, gpt2-mini, gpt2-124m, gpt2-1558m, llama-nano or llama-1b")->required();
  command->add_option("-o,--output", options->output, "model.onnx")->required();
  command->add_option("--layers", options->layers, "of GPT-2 and LLaMA; default the size's own");
  command->add_option("--context", options->context, "tokens per sample; default the size's own");
  command->add_option("--batch", options->batch, "fixed batch; default symbolic");
  command->add_option("--seed", options->seed, "of the weights")->capture_default_str();
  command->add_flag("!--no-weights", options->weights, "shapes alone, for estimates and compile times");
  command->callback([command, options] { run(*command, *options); });
}

}  // namespace zeroplan
