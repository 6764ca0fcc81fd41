// One report on whether a model trains as its user thinks.
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "api/doctor.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/npy.h"
#include "base/temporary_folder.h"
#include "graph/onnx/read_model.h"
#include "runtime/cuda/cuda_backend.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/forward_judge.h"
#include "tools/onnxruntime.h"
#include "tools/open_files.h"

namespace zeroplan {
namespace {

constexpr int kMostDirections = 24;
constexpr int64_t kDecisionSteps = 3;

struct Arguments {
  std::string model, data, python = "python3";
  CompileArguments compile;
};

double largest(const HostTensor& values) {
  double most = 0;
  for (int64_t i = 0; i < values.count(); ++i)
    if (std::isfinite(values.get(i))) most = std::max(most, std::abs(values.get(i)));
  return most;
}

double largest_difference(const HostTensor& a, const HostTensor& b) {
  double most = 0;
  for (int64_t i = 0; i < a.count(); ++i)
    if (a.get(i) != b.get(i) && !(std::isnan(a.get(i)) && std::isnan(b.get(i)))) most = std::max(most, std::abs(a.get(i) - b.get(i)));
  return most;
}

// What outputs are compared with.
struct Judge {
  std::string name;
  Tolerance tolerance;
};

const char* kernels_text(OnnxRuntimeKernels kernels) {
  switch (kernels) {
    case OnnxRuntimeKernels::usual: return "";
    case OnnxRuntimeKernels::plain: return " (graph optimizations off, as fused integer kernels may saturate)";
    case OnnxRuntimeKernels::exact_integers: return " (session.x64quantprecision on, as other integer kernels may saturate)";
  }
  throw std::logic_error("kernels of ONNX Runtime without a text");
}

class Doctor {
 public:
  Doctor(const Arguments& arguments, const ModelFile& model, CompileOptions options)
      : arguments_(arguments), model_(model), options_(std::move(options)) {}

  void run() {
    section("what is trained", [&] { inspect_model(); });
    section("forward", [&] { compare_forward(); });
    if (trainable_) {
      section("gradients", [&] { compare_gradients(); });
      section("ties and splits", [&] { compare_decisions(); });
    }
    say("\n{}\n", findings_ == 0 ? "nothing found" : counted(findings_, "finding"));
  }

  int findings() const { return findings_; }

 private:
  template <typename Work>
  void section(const char* title, Work&& work) {
    say("\n{}\n", title);
    try {
      work();
    } catch (const ErrorList& list) {
      for (const std::string& problem : list.problems()) finding(problem);
    } catch (const Error& error) {
      finding(error.what());
    }
  }

  void finding(const std::string& text) {
    ++findings_;
    say("  ! {}\n", text);
  }

  std::unique_ptr<DataSource> open_data(const Plan& plan) const { return open_npy_folder(arguments_.data, plan); }

  void inspect_model() {
    const ModelInspection inspection = inspect(model_, options_);
    int64_t trained = 0, frozen = 0;
    for (const Parameter& p : inspection.model.graph.parameters) (p.trainable ? trained : frozen) += elements(p.shape);
    say("  {} elements are trained, {} are parameters that stay\n", trained, frozen);
    for (const std::string& line : inspection.model.report) say("  {}\n", line);
    for (const std::string& problem : inspection.problems) finding(problem);
    trainable_ = inspection.problems.empty();
  }

  void compare_forward() {
    const std::optional<std::string> version = onnxruntime_version(arguments_.python);
    if (!version) return say("  ONNX Runtime is not there ({} cannot import it): not compared\n", arguments_.python), void();
    CompileOptions options = options_;
    options.outputs = model_.output_names();
    options.loss.clear();
    options.ranks = options.micro_batches = 1;
    const Plan plan = compile(model_, options);
    const std::unique_ptr<DataSource> data = open_data(plan);
    const TemporaryFolder batch;
    write_first_batch(plan, *data, batch.path());
    const OnnxModel stored = read_model(*model_.weights());
    const OnnxRuntimeKernels kernels = wanted_kernels(stored);
    const Judge judge = {fmt::format("ONNX Runtime {}{}", *version, kernels_text(kernels)), forward_tolerance(stored)};
    const auto random = random_outputs(stored, inspect(model_, options).model);
    const auto theirs = run_onnxruntime(arguments_.python, arguments_.model, batch.path(), options.outputs, kernels);
    make_executor(plan, {}, model_.weights())->predict(*data, 0, nullptr, [&](int64_t, const PlanOutput& output, const HostTensor& values) {
      if (const auto drawn = random.find(output.name); drawn != random.end())
        return say("  output '{}': not compared: {} draws at random\n", output.name, drawn->second), void();
      const auto found = theirs.find(output.name);
      if (found == theirs.end())
        return say("  output '{}': ONNX Runtime {} gives no such tensor: not compared\n", output.name, *version), void();
      compare_output(output.name, values, found->second, judge);
    });
  }

  void write_first_batch(const Plan& plan, const DataSource& data, const std::string& folder) const {
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      HostTensor values(plan.inputs[i].dtype, plan.inputs[i].shape);
      data.read(static_cast<int>(i), 0, plan.header.batch, nullptr, values.view());
      write_npy(folder + "/" + npy_file_name(plan.inputs[i].name), values);
    }
    for (const auto& [name, values] : options_.bind) write_npy(folder + "/" + npy_file_name(name), values);
  }

  void compare_output(const std::string& name, const HostTensor& ours, const HostTensor& theirs, const Judge& judge) {
    if (ours.shape() != theirs.shape())
      return finding(
          fmt::format("output '{}' has shape {}, {} gives {}", name, to_string(ours.shape()), judge.name, to_string(theirs.shape())));
    const double difference = largest_difference(ours, theirs), scale = std::max(largest(theirs), 1e-30);
    const std::string reason = judge.tolerance.reason.empty() ? "" : "; " + judge.tolerance.reason;
    const std::string text = fmt::format("output '{}': differs from {} by {:.3g} at most, its largest value is {:.3g}{}", name, judge.name,
                                         difference, scale, reason);
    difference <= judge.tolerance.relative* scale || difference == 0 ? say("  {}\n", text) : finding(text);
  }

  void compare_gradients() {
    for (const DirectionCheck& check : check_directions(
             model_, options_, [this](const Plan& p) { return open_data(p); }, kMostDirections)) {
      if (check.rounded) {
        say("  {}: not comparable: rounding is passed straight through\n", check.parameter);
        continue;
      }
      const std::string text = fmt::format("{}: gradient along a random direction {:.9g}, difference of the loss {:.9g}", check.parameter,
                                           check.built, check.numeric);
      check.agrees ? say("  {}\n", text) : finding(text);
    }
  }

  void compare_decisions() {
    const auto effects = decision_effects(
        model_, options_, [this](const Plan& p) { return open_data(p); }, kDecisionSteps);
    if (effects.empty()) say("  none was decided\n");
    for (const DecisionEffect& effect : effects)
      say("  {}: loss of step {} {:.9g}, otherwise {:.9g}\n", effect.text, kDecisionSteps, effect.loss, effect.otherwise);
  }

  const Arguments& arguments_;
  const ModelFile& model_;
  const CompileOptions options_;
  bool trainable_ = false;
  int findings_ = 0;
};

void run(const Arguments& arguments) {
  const CompileOptions options = arguments.compile.finish();
  if (options.device == DeviceKind::cuda) require_gpu();
  check_data_folder(arguments.data);
  const ModelFile model = open_model(arguments.model);
  Doctor doctor(arguments, model, options);
  doctor.run();
  if (doctor.findings() > 0) throw Error(fmt::format("{}: {}", arguments.model, counted(doctor.findings(), "finding")));
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "check a model on data: forward, gradients, ties, and what cannot be trained");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx")->required();
  command->add_option("--data", arguments->data, "folder with NAME.npy per input, samples on the first axis")->required();
  command->add_option("--python", arguments->python, "interpreter that has ONNX Runtime, for the forward comparison")
      ->capture_default_str();
  arguments->compile.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
