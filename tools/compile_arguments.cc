#include "tools/compile_arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "api/batching.h"
#include "base/error.h"
#include "base/split.h"
#include "tools/option_values.h"

namespace zeroplan {
namespace {

// "NAME=VALUE" → both halves; a problem line otherwise.
bool split_assignment(const std::string& text, const char* option, std::string& name, std::string& value,
                      std::vector<std::string>& problems) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    problems.push_back(fmt::format("--{} {}: must be NAME=VALUE", option, text));
    return false;
  }
  name = text.substr(0, at);
  value = text.substr(at + 1);
  return true;
}

bool parse_integer(const std::string& text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Numbers separated by commas; true and false are 1 and 0.
void bind_value(const std::string& name, const std::string& list, CompileOptions& options, std::vector<std::string>& problems) {
  std::vector<double> values;
  for (const std::string& text : split(list, ',')) {
    double number = text == "true";
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text != "true" && text != "false" && (error != std::errc() || rest != text.data() + text.size()))
      return problems.push_back(fmt::format("--bind {}={}: '{}' is not a number", name, list, text));
    values.push_back(number);
  }
  const bool whole = std::all_of(values.begin(), values.end(), [](double v) { return v == std::trunc(v) && std::abs(v) < 9e15; });
  options.bind[name] = HostTensor::of(whole ? DType::i64 : DType::f64, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

void declare_later_option(CLI::App& command, const std::string& name, const std::string& what) {
  command
      .add_option_function<std::string>(
          name, [name, what](const std::string&) { throw Error(fmt::format("{} is not available yet: {}", name, what)); },
          "(not available yet)")
      ->expected(0, 1)
      ->group("");
}

void CompileArguments::declare(CLI::App& command) {
  command_ = &command;
  auto option = [&](const char* name, auto& target, const char* text) {
    return command.add_option(name, target, text)->group("Compile")->capture_default_str();
  };
  option("--ranks", options_.ranks, "ranks that share the model (N), 1 to 65536; under mpirun or srun the number of processes");
  option("--batch", options_.batch,
         "samples per optimizer step, over all ranks, 1 or more; default one per micro-batch, or what the model has fixed");
  option("--micro-batches", options_.micro_batches, "pieces that the batch is cut into, over all ranks (V), 1 or more; default N");
  option("--stage", options_.stage, "ZeRO stage, 0 to 3: 0 data parallel, 1 optimizer sharded, 2 and gradients, 3 and weights");
  option("--dim", dims_, "NAME=N: value of a symbolic dimension")->take_all();
  option("--sample-axis", sample_axes_, "INPUT=AXIS or INPUT=none: where samples lie in an input")->take_all();
  option("--bind", bound_, "INPUT=V or INPUT=V,V,…: an input that is always the same, such as a sampling rate")->take_all();
  option("--loss", options_.loss,
         "output name, or a built-in over one: softmax_cross_entropy(logits, labels), nll, bce_with_logits, mse(out, target), l1, "
         "smooth_l1, huber, cosine");
  option("--loss-model", options_.loss_model, "ONNX file that makes the loss: its inputs are outputs of the model, or data");
  option("--loss-map", loss_map_, "INPUT=OUTPUT: of the loss model, of the model, where their names differ")->take_all();
  option("--sample-weight", options_.sample_weight, "INPUT: a number for each sample, which counts as often; a mean is over their sum");
  option("--optimizer", optimizer_, "adamw, adam or sgd; default the one that the model states, if it does");
  option("--momentum", options_.momentum, "of sgd, from 0 to below 1");
  option("--precision", precision_, "fp32, fp64, bf16 or fp16: of the model's values; with bf16 and fp16 the update keeps float32 masters");
  option("--reduce-dtype", reduce_dtype_, "fp32, bf16 or fp16: of gradients on the wire; they are added up in float32");
  option("--reduce", reduce_, "ordered: sums in the order of the micro-batches, the same bits at any N; fast: on GPUs, as NCCL adds up");
  option("--unit", options_.unit_patterns, "PATTERN: parameters with the same matched text form one shard unit")->take_all();
  option("--unit-bytes", options_.unit_bytes, "largest automatic unit in bytes; 0 chooses");
  option("--prefetch", options_.prefetch, "units gathered ahead of the one in use, 0 to 64");
  option("--reduce-bytes", options_.reduce_bytes, "largest reduce buffer in bytes where no single parameter exceeds it; 0 no limit");
  option("--train", options_.train, "PATTERN: train these tensors too, where they would be constants or frozen; wins over --freeze")
      ->take_all();
  option("--freeze", options_.freeze, "PATTERN: keep these parameters as they are, but for those of --train")->take_all();
  option("--tie", options_.tie, "PATTERN: equal copies under these names are one parameter")->take_all();
  option("--untie", options_.untie, "PATTERN: copies under these names stay apart")->take_all();
  option("--train-bn", options_.train_bn, "PATTERN: these BatchNormalization nodes use and record the statistics of their batch")
      ->take_all();
  option("--eval-bn", options_.eval_bn, "PATTERN: these BatchNormalization nodes use their running statistics, which stay as they are")
      ->take_all();
  command.add_flag("--sync-bn", options_.sync_bn, "batch statistics over all ranks; needs one micro-batch per rank")->group("Compile");
  option("--device", device_, "cpu or cuda: what the plan is made for");
  option("--threads", options_.threads, "threads per rank on the CPU, 1 to 1024");
  declare_later_option(command, "--recompute", "activations are kept; lower --batch or raise --micro-batches instead");
}

CompileOptions CompileArguments::finish(int ranks) const {
  CompileOptions options = options_;
  if (command_->count("--ranks") == 0) options.ranks = ranks;
  std::vector<std::string> problems = given_as_zero(*command_, {"--batch", "--micro-batches"});
  std::string name, value;
  for (const std::string& text : dims_) {
    int64_t size = 0;
    if (!split_assignment(text, "dim", name, value, problems)) continue;
    if (!parse_integer(value, size))
      problems.push_back(fmt::format("--dim {}: '{}' is not a whole number", text, value));
    else
      options.dims[name] = size;
  }
  for (const std::string& text : sample_axes_) {
    int64_t axis = -1;
    if (!split_assignment(text, "sample-axis", name, value, problems)) continue;
    if (value != "none" && (!parse_integer(value, axis) || axis < 0 || axis >= kMaxRank))
      problems.push_back(fmt::format("--sample-axis {}: '{}' is neither none nor an axis from 0 to {}", text, value, kMaxRank - 1));
    else
      options.sample_axes[name] = static_cast<int>(axis);
  }
  for (const std::string& text : bound_)
    if (split_assignment(text, "bind", name, value, problems)) bind_value(name, value, options, problems);
  for (const std::string& text : loss_map_)
    if (split_assignment(text, "loss-map", name, value, problems)) options.loss_map[name] = value;
  if (const std::optional<OptimizerKind> kind = parse_optimizer(optimizer_))
    options.optimizer = *kind;
  else
    problems.push_back(fmt::format("--optimizer {}: must be adamw, adam or sgd", optimizer_));
  if (const std::optional<DeviceKind> kind = parse_device_kind(device_))
    options.device = *kind;
  else
    problems.push_back(fmt::format("--device {}: must be cpu or cuda", device_));
  options.model_optimizer = command_->count("--optimizer") == 0 && command_->count("--momentum") == 0;
  if (const std::optional<DType> precision = parse_precision(precision_))
    options.precision = *precision;
  else
    problems.push_back(fmt::format("--precision {}: must be fp32, fp64, bf16 or fp16", precision_));
  if (const std::optional<ReduceMode> mode = parse_reduce_mode(reduce_))
    options.reduce = *mode;
  else
    problems.push_back(fmt::format("--reduce {}: must be ordered or fast", reduce_));
  if (command_->count("--reduce-dtype") > 0) {
    options.reduce_dtype = parse_precision(reduce_dtype_);
    if (!options.reduce_dtype || options.reduce_dtype == DType::f64)
      problems.push_back(fmt::format("--reduce-dtype {}: must be fp32, bf16 or fp16", reduce_dtype_));
  }
  if (!problems.empty()) throw ErrorList("options that cannot be used:", problems);
  check_options(options);
  return options;
}

}  // namespace zeroplan
