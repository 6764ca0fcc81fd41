#include "tools/run_arguments.h"

#include <charconv>
#include <csignal>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/stated_run.h"
#include "base/counted.h"
#include "base/error.h"
#include "runtime/mpi/mpi_backend.h"
#include "tools/allocation.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/gather_trace.h"
#include "tools/metrics_writer.h"
#include "tools/option_values.h"
#include "tools/progress.h"
#include "tools/trace_writer.h"

namespace zeroplan {
namespace {

Executor* running = nullptr;  // for the signal handler alone

void on_interrupt(int) {
  if (running) running->request_stop();
}

// What these signals do while this lives. What nohup ignores stays ignored.
class SignalScope {
 public:
  SignalScope(std::initializer_list<int> signals, void (*handler)(int)) {
    for (const int signal : signals) {
      previous_.emplace_back(signal, std::signal(signal, handler));
      if (signal == SIGHUP && previous_.back().second == SIG_IGN) std::signal(signal, SIG_IGN);
    }
  }
  ~SignalScope() {
    for (const auto& [signal, handler] : previous_) std::signal(signal, handler);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  std::vector<std::pair<int, void (*)(int)>> previous_;
};

// The executor that on_interrupt stops at the next step border.
class RunningScope {
 public:
  explicit RunningScope(Executor& executor) { running = &executor; }
  ~RunningScope() { running = nullptr; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
};

void parse_betas(const std::string& text, RunOptions& options) {
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, options.beta1);
  const bool comma = first.ec == std::errc() && first.ptr != end && *first.ptr == ',';
  const auto second = std::from_chars(comma ? first.ptr + 1 : end, end, options.beta2);
  if (second.ec != std::errc() || second.ptr != end)
    throw Error(fmt::format("--betas {}: must be two numbers A,B, each from 0 to below 1", text));
}

Schedule parse_schedule(const std::string& text) {
  if (text == "constant") return Schedule::constant;
  if (text == "linear") return Schedule::linear;
  if (text == "cosine") return Schedule::cosine;
  throw Error(fmt::format("--schedule {}: must be constant, linear or cosine", text));
}

}  // namespace

void RunArguments::declare(CLI::App& command, const Processes& processes) {
  command_ = &command;
  processes_ = &processes;
  auto option = [&](const char* name, auto& target, const char* text) {
    return command.add_option(name, target, text)->group("Run")->capture_default_str();
  };
  option("--data", data_, "folder with NAME.npy per input, or 'synthetic'");
  option("--tokens", tokens_, "file of tokens for language models, instead of --data");
  option("--token-bytes", token_bytes_, "1: bytes, 2: little-endian uint16");
  option("--steps", options_.steps, "optimizer steps, 1 or more; default by --epochs");
  option("--epochs", options_.epochs, "passes over the data, 1 or more; default 1");
  command.add_flag("--shuffle", options_.shuffle, "a new sample order in every epoch")->group("Run");
  option("--lr", options_.lr, "learning rate, above 0 and at most 1e6");
  option("--betas", betas_, "of adam and adamw");
  option("--eps", options_.eps, "of adam and adamw, above 0 and at most 1");
  option("--adam-form", adam_form_, "of adam and adamw: torch, or hugging-face (eps without correction, decay after the step)");
  option("--weight-decay", options_.weight_decay, "on every trainable tensor, 0 to 1000");
  option("--no-decay", options_.no_decay, "PATTERN: no weight decay on these")->take_all();
  option("--clip", options_.clip, "largest global gradient norm, up to 1e12; 0 off");
  option("--schedule", schedule_, "of the learning rate: constant, linear or cosine");
  option("--warmup", options_.warmup, "steps over which the learning rate rises, 0 or more");
  option("--seed", options_.seed, "of shuffling, of dropout and other random numbers, and of synthetic data, 0 or more");
  option("--eval-data", eval_data_, "folder like --data, evaluated without training on it");
  option("--eval-tokens", eval_tokens_, "file like --tokens");
  option("--eval-fraction", eval_fraction_, "hold out this last share of --tokens, from 0 to below 1, and evaluate on it");
  option("--eval-every", options_.eval_every, "steps between evaluations, 1 or more; 0: after the last");
  option("--metrics", metrics_, "file for one JSON line per step");
  option("--trace", trace_, "file for a measured Chrome trace");
  option("--trace-steps", trace_steps_, "first steps that the trace keeps, 1 to 100000; 0: as many as 65,536 events per stream hold");
  option("--export", export_, "file for the trained ONNX model");
  command.add_flag("--check-nan", check_nan_, "name the first operator that makes a NaN or infinity")->group("Run");
  command.add_flag("--check-memory", check_memory_, "measure the highest byte touched and guard every arena")->group("Run");
  for (const char* name : {"--save", "--save-every", "--resume"})
    declare_later_option(command, name, "checkpoints do not exist yet; --export writes the trained model");
  option("--cuda-graph", cuda_graph_, "on a GPU: on issues the kernels between two collectives as one graph, off one by one");
}

RunOptions RunArguments::finish() const {
  RunOptions options = options_;
  parse_betas(betas_, options);
  options.schedule = parse_schedule(schedule_);
  const std::optional<AdamForm> form = parse_adam_form(adam_form_);
  if (!form) throw Error(fmt::format("--adam-form {}: must be torch or hugging-face", adam_form_));
  options.adam_form = *form;
  return options;
}

RunOptions RunArguments::finish(const Plan& plan) const {
  std::set<std::string> given;
  for (const char* name : {"lr", "betas", "eps", "weight-decay", "clip", "adam-form"})
    if (command_->count(fmt::format("--{}", name)) > 0) given.insert(name);
  RunOptions options = finish();
  take_stated(plan, given, options);
  return options;
}

std::vector<NamedFile> RunArguments::outputs() const {
  return {{"--metrics", metrics_, true},
          {"--trace", trace_},
          {"--export", export_},
          {"the weights of --export", export_.empty() ? "" : export_ + ".data"}};
}

void check_local_ranks(int ranks, const std::string& from) {
  if (ranks > kMostThreads)
    throw Error(fmt::format("{} {}: train and run keep each rank in a thread of this process, {} at most; compile and estimate take more",
                            from, ranks, kMostThreads));
}

void check_ranks(int ranks, const std::string& from, const Processes& processes) {
  if (!processes.launch()) return check_local_ranks(ranks, from);
  if (ranks != processes.launch()->size)
    throw Error(fmt::format("{} {}: {} started {} processes, one for each rank; start {}, or leave --ranks out where the plan is compiled",
                            from, ranks, processes.launch()->by, processes.launch()->size, ranks));
}

void RunArguments::check(const std::vector<NamedFile>& inputs) const {
  if (cuda_graph_ != "on" && cuda_graph_ != "off") throw Error(fmt::format("--cuda-graph {}: must be on or off", cuda_graph_));
  if (data_.empty() == tokens_.empty()) throw Error("give the training data: either --data DIR (or synthetic) or --tokens FILE");
  if (token_bytes_ != 1 && token_bytes_ != 2) throw Error(fmt::format("--token-bytes {}: must be 1 or 2", token_bytes_));
  if (!(eval_fraction_ >= 0 && eval_fraction_ < 1))
    throw Error(fmt::format("--eval-fraction {}: must be from 0 to below 1", eval_fraction_));
  if (eval_fraction_ > 0 && tokens_.empty()) throw Error("--eval-fraction goes with --tokens");
  if (options_.eval_every > 0 && !wants_eval()) throw Error("--eval-every needs --eval-data, --eval-tokens or --eval-fraction");
  if (trace_steps_ < 0 || trace_steps_ > 100000) throw Error(fmt::format("--trace-steps {}: must be from 1 to 100000, or 0", trace_steps_));
  if (trace_steps_ > 0 && trace_.empty()) throw Error("--trace-steps goes with --trace FILE");
  if (const std::vector<std::string> zeros = given_as_zero(*command_, {"--steps", "--epochs"}); !zeros.empty())
    throw ErrorList("options that cannot be used:", zeros);
  check_run_options(finish());
  std::vector<NamedFile> all = inputs;
  for (const std::string& folder : {data_, eval_data_}) {
    if (folder.empty() || folder == "synthetic") continue;
    check_data_folder(folder);
    for (NamedFile& file : data_files(folder)) all.push_back(std::move(file));
  }
  for (const std::string& file : {tokens_, eval_tokens_}) {
    if (!file.empty()) check_token_file(file);
    all.push_back({"a token file", file});
  }
  if (processes_->first()) check_outputs(outputs(), all);
}

std::unique_ptr<DataSource> RunArguments::open_data(const Plan& plan) const {
  if (!tokens_.empty()) return open_tokens(tokens_, token_bytes_, plan, 0, 1 - eval_fraction_);
  if (data_ == "synthetic") return make_synthetic(plan, options_.seed);
  return open_npy_folder(data_, plan);
}

std::unique_ptr<DataSource> RunArguments::open_eval_data(const Plan& plan) const {
  if (!eval_data_.empty()) return open_npy_folder(eval_data_, plan);
  if (!eval_tokens_.empty()) return open_tokens(eval_tokens_, token_bytes_, plan);
  if (eval_fraction_ > 0) return open_tokens(tokens_, token_bytes_, plan, 1 - eval_fraction_, 1);
  return nullptr;
}

RunData RunArguments::open(const Plan& plan) const {
  if (processes_->first()) check_outputs(outputs(), model_files(plan));
  RunData data{open_data(plan), open_eval_data(plan)};
  check_run(plan, *data.training, data.evaluation.get(), finish(plan));
  if (const std::string line = left_out(plan, *data.training); !line.empty()) say("{}\n", line);
  return data;
}

// Ctrl-C ends it at a step border, and so does an output that nobody can read any more.
int64_t RunArguments::train(Executor& executor, const RunData& data, MetricsWriter& metrics) const {
  Progress progress(executor.plan(), processes_->launch().has_value());
  RunResult result;
  {
    const SignalScope interrupt({SIGINT, SIGTERM}, on_interrupt);
    result = run_training(executor, *data.training, data.evaluation.get(), finish(executor.plan()), [&](const RunEvent& event) {
      metrics.write(event);
      progress.show(event);
      if (!console_problem().empty()) executor.request_stop();
    });
  }
  progress.finish(result);
  return result.steps_done;
}

std::vector<std::string> RunArguments::settings(const Plan& plan, const RunData& data) const {
  const RunOptions o = finish(plan);
  const auto samples = [](const DataSource* source) { return source ? source->samples() : 0; };
  std::vector<std::string> all;
  for (const auto& [name, value] : plan.header.options) all.push_back(fmt::format("--{} {}", name, value));
  all.insert(all.end(),
             {fmt::format("--steps {}", o.steps), fmt::format("--epochs {}", o.epochs), fmt::format("--shuffle {}", o.shuffle),
              fmt::format("--seed {}", o.seed), fmt::format("--lr {}", o.lr), fmt::format("--betas {},{}", o.beta1, o.beta2),
              fmt::format("--eps {}", o.eps), fmt::format("--adam-form {}", adam_form_name(o.adam_form)),
              fmt::format("--weight-decay {}", o.weight_decay), fmt::format("--no-decay {}", fmt::join(o.no_decay, " ")),
              fmt::format("--clip {}", o.clip), fmt::format("--schedule {}", schedule_), fmt::format("--warmup {}", o.warmup),
              fmt::format("--eval-every {}", o.eval_every), fmt::format("{} samples of training data", samples(data.training.get())),
              fmt::format("{} samples of evaluation data", samples(data.evaluation.get())),
              fmt::format("{} --trace", trace_.empty() ? "no" : "a"), fmt::format("{} --export", export_.empty() ? "no" : "an")});
  return all;
}

// All ranks gather, the first one writes.
void RunArguments::export_model(Executor& executor) const {
  if (!processes_->first()) return give_to_export(executor);
  const ExportedFiles exported = export_trained(executor, export_);
  say("exported {}\n", fmt::join(exported.paths, " and its weights "));
  for (const std::string& line : exported.report) say("{}\n", line);
}

void RunArguments::execute(const Plan& plan, const RunData& data, std::shared_ptr<WeightFiles> weights) const {
  ExecutorOptions executor_options;
  if (MpiJob* job = processes_->job()) {
    executor_options.backend = [job, local = processes_->launch()->local_rank](const Plan& p, std::chrono::milliseconds deadline) {
      return make_mpi_backend(*job, p, deadline, local);
    };
    processes_->require_equal(settings(plan, data));
    // To the process's end: a launcher that ends the job first asks so.
    for (const int signal : {SIGTERM, SIGUSR1}) std::signal(signal, on_interrupt);
  }
  executor_options.check_nan = check_nan_;
  executor_options.check_memory = check_memory_;
  executor_options.cuda_graph = cuda_graph_ == "on";
  executor_options.trace = !trace_.empty();
  executor_options.trace_steps = trace_steps_;
  MetricsWriter metrics(processes_->first() ? metrics_ : "", plan);
  const std::unique_ptr<Executor> executor = make_executor(plan, executor_options, std::move(weights));
  for (const std::string& line : {executor->collectives(), executor->products()})
    if (!line.empty()) say("{}\n", line);
  keep_freed_memory();
  const RunningScope stoppable(*executor);  // before any signal is caught: none is lost
  // To the end of the export: a lost terminal sends SIGHUP more than once, and takes the readers of pipes along.
  const SignalScope hangup({SIGHUP}, on_interrupt), broken_pipe({SIGPIPE}, SIG_IGN);
  const int64_t steps = train(*executor, data, metrics);
  std::vector<TraceEvent> events;
  if (!trace_.empty()) events = gather_trace(*executor, processes_->job());
  if (!export_.empty()) export_model(*executor);
  // Behind the export, which a full disk must not lose.
  if (!trace_.empty() && processes_->first()) write_trace(trace_, plan, events, steps, trace_steps_);
  if (const std::string problem = console_problem(); !problem.empty())
    throw Error(fmt::format("cannot write to the standard output: {}; the run ended after {}", problem, counted(steps, "step")));
  if (!metrics.problem().empty()) throw Error(metrics.problem());
}

}  // namespace zeroplan
