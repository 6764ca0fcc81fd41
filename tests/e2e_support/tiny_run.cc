#include "tests/e2e_support/tiny_run.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/npy.h"
#include "tests/e2e_support/tested_device.h"

namespace zeroplan {

TinyCase::TinyCase(const TinyModel& tiny, const std::map<std::string, HostTensor>& data) {
  tiny.save(model());
  std::filesystem::create_directory(data_folder());
  for (const auto& [input, values] : data) write(input, values);
}

void TinyCase::write(const std::string& input, const HostTensor& values) const { write_npy(data_folder() + "/" + input + ".npy", values); }

Plan TinyCase::compile(const CompileOptions& options) const { return zeroplan::compile(model(), options); }

std::vector<double> TinyRun::losses() const {
  std::vector<double> all;
  for (const StepReport& step : steps) all.push_back(step.loss);
  return all;
}

Weights all_weights(Executor& executor) {
  Weights all;
  const Plan& plan = executor.plan();
  for (size_t i = 0; i < plan.parameters.size(); ++i) all[plan.parameters[i].parameter.name] = executor.weights(static_cast<int>(i));
  return all;
}

TinyRun train(const TinyCase& tiny, const CompileOptions& options, const RunOptions& run, ExecutorOptions executor_options) {
  const Plan plan = tiny.compile(options);
  const auto executor = make_executor(plan, std::move(executor_options));
  const auto data = tiny.data(plan);
  TinyRun result;
  run_training(*executor, *data, nullptr, run, [&](const RunEvent& event) { result.steps.push_back(*event.step); });
  result.weights = all_weights(*executor);
  return result;
}

Weights gradients(const TinyCase& tiny, const CompileOptions& options, ExecutorOptions executor_options) {
  const Plan plan = tiny.compile(options);
  const auto executor = make_executor(plan, std::move(executor_options));
  const auto data = tiny.data(plan);
  const StepReport report = executor->accumulate(*data, 0, nullptr, scalars_of_step(0, 0.1));
  Weights all;
  for (const auto& [parameter, value] : plan.gradients) {
    HostTensor gradient = executor->gradient(parameter);
    for (int64_t i = 0; i < gradient.count(); ++i) gradient.set(i, gradient.get(i) / report.weight);
    all[plan.parameters[parameter].parameter.name] = gradient;
  }
  return all;
}

RunOptions sgd_run(double lr, int64_t steps) {
  RunOptions run;
  run.lr = lr;
  run.steps = steps;
  run.weight_decay = 0;
  return run;
}

CompileOptions sgd_compile(int64_t batch, int ranks, int stage, int64_t micro_batches) {
  CompileOptions options;
  options.device = tested_device();
  options.optimizer = OptimizerKind::sgd;
  options.batch = batch;
  options.ranks = ranks;
  options.stage = stage;
  options.micro_batches = micro_batches;
  return options;
}

std::vector<CompileOptions> everywhere(CompileOptions options, const std::vector<int>& ranks) {
  std::vector<CompileOptions> all;
  for (options.stage = 0; options.stage <= 3; ++options.stage)
    for (const int n : ranks) {
      options.ranks = n;
      all.push_back(options);
    }
  return all;
}

std::string describe(const CompileOptions& o) {
  return fmt::format("ranks {} stage {} batch {} micro-batches {} prefetch {} unit bytes {}", o.ranks, o.stage, o.batch, o.micro_batches,
                     o.prefetch, o.unit_bytes);
}

HostTensor floats(const Shape& shape, const std::vector<double>& values) { return HostTensor::of(DType::f32, shape, values); }

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.get(i));
  return values;
}

int parameter_index(const Plan& plan, const std::string& name) {
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    if (plan.parameters[i].parameter.name == name) return static_cast<int>(i);
  throw Error("the plan has no parameter " + name);
}

RunScalars scalars_of_step(int64_t step, double lr) {
  RunScalars scalars;
  scalars.lr = lr;
  scalars.weight_decay = 0;
  scalars.step = step + 1;
  return scalars;
}

}  // namespace zeroplan
