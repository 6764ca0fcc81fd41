// Plan + weights + executor, and the way back to a file.
#include <fmt/format.h>

#include "api/zeroplan.h"
#include "base/error.h"
#include "graph/onnx/read_model.h"
#include "graph/onnx/stored_weight.h"
#include "runtime/cuda/cuda_backend.h"

namespace zeroplan {

namespace {

void require_same_model(const Plan& plan, WeightFiles& files) {
  if (const std::string digest = read_digest(files); digest != plan.header.model_digest)
    throw Error(fmt::format(
        "{} is not the model that the plan was compiled from (digest {} instead of {}); compile it again, or bring back the right file",
        files.model_path(), digest, plan.header.model_digest));
}

std::vector<Parameter> parameters_of(const Plan& plan) {
  std::vector<Parameter> parameters;
  for (const PlanParameter& p : plan.parameters) parameters.push_back(p.parameter);
  return parameters;
}

}  // namespace

WeightReader open_weights(const Plan& plan, std::shared_ptr<WeightFiles> files) {
  if (!files) files = std::make_shared<WeightFiles>(plan.header.model_path);
  require_same_model(plan, *files);
  auto parameters = std::make_shared<std::vector<PlanParameter>>(plan.parameters);
  // shared_ptr: std::function must be copyable, and every rank's copy reads the same mapped files.
  return [files, parameters, dtype = wide_dtype(plan.header.precision)](int parameter, int64_t first, int64_t count, void* to) {
    read_weight(*files, parameters->at(parameter).parameter.source, first, count, dtype, to);
  };
}

std::unique_ptr<Executor> make_executor(const Plan& plan, ExecutorOptions options, std::shared_ptr<WeightFiles> files) {
  require_verified(plan);
  if (!options.backend && plan.header.device == DeviceKind::cuda) options.backend = make_cuda_backend;
  return std::make_unique<Executor>(std::vector{std::make_shared<const Plan>(plan)}, open_weights(plan, std::move(files)),
                                    std::move(options));
}

void give_to_export(Executor& executor) {
  for (int round = export_rounds(parameters_of(executor.plan())); round > 0; --round) executor.export_parameters([](int, const void*) {});
}

ExportedFiles export_trained(Executor& executor, const std::string& path) {
  const Plan& plan = executor.plan();
  WeightFiles files(plan.header.model_path);
  require_same_model(plan, files);
  const std::vector<Parameter> parameters = parameters_of(plan);
  return export_model(plan.header.model_path, path, parameters, [&](const TakeParameter& take) {
    executor.export_parameters([&](int index, const void* values) {
      const Parameter& p = parameters[index];
      take(index, {static_cast<const std::byte*>(values), static_cast<size_t>(elements(p.shape) * dtype_bytes(wide_dtype(p.dtype)))});
    });
  });
}

}  // namespace zeroplan
