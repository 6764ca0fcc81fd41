#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/batching.h"
#include "api/zeroplan.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/type_name.h"
#include "tools/commands.h"
#include "tools/compile_arguments.h"
#include "tools/console.h"
#include "tools/open_files.h"

namespace zeroplan {
namespace {

struct Arguments {
  std::string model;
  CompileArguments compile;
};

const char* role_name(Role role) {
  switch (role) {
    case Role::parameter: return "parameter";
    case Role::frozen: return "frozen";
    case Role::buffer: return "buffer";
    case Role::constant: return "constant";
  }
  return "";
}

void print_roles(const ImportedModel& model) {
  size_t name_width = 11, root_width = 4;
  for (const RoleRow& row : model.roles) {
    name_width = std::max(name_width, row.initializer.size());
    root_width = std::max(root_width, row.root.size());
  }
  say("{:<{}}  {:<9}  {:<8}  {:<16}  {:<{}}  {}\n", "initializer", name_width, "role", "type", "shape", "name", root_width, "why");
  for (const RoleRow& row : model.roles)
    say("{:<{}}  {:<9}  {:<8}  {:<16}  {:<{}}  {}\n", row.initializer, name_width, role_name(row.role), row.type, to_string(row.shape),
        row.root, root_width, row.reason);
}

void print_summary(const ImportedModel& model) {
  int64_t trainable = 0, frozen = 0, tensors = 0;
  for (const Parameter& p : model.graph.parameters) {
    (p.trainable ? trainable : frozen) += elements(p.shape);
    tensors += p.trainable;
  }
  say("\ntrainable: {} in {}; frozen: {}\n", trainable, counted(tensors, "tensor"), frozen);
  say("loss: {}\n", model.graph.loss.description.empty() ? "none" : model.graph.loss.description);
  if (!model.loss_candidates.empty()) say("loss candidates: {}\n", fmt::join(model.loss_candidates, ", "));
  for (const ImportedInput& input : model.inputs) {
    const Value& value = model.graph.value(input.value);
    say("input {}: {} {}, {}\n", input.name, type_name(value.dtype), to_string(value.shape),
        input.sample_axis < 0 ? std::string("given whole") : fmt::format("samples on axis {}", input.sample_axis));
  }
}

void run(const Arguments& arguments) {
  CompileOptions options = arguments.compile.finish();
  const ModelInspection inspection = inspect(open_model(arguments.model), options);
  const ImportedModel& model = inspection.model;
  const std::string raised = model.opset < model.decoded_opset ? fmt::format(", read as opset {}", model.decoded_opset) : "";
  say("{}: opset {}{}, {}\n\n", arguments.model, model.opset, raised, model.producer.empty() ? "producer unknown" : model.producer);
  print_roles(model);
  print_summary(model);
  for (const std::string& line : model.report) say("{}\n", line);
  if (inspection.problems.empty()) return say("no problems: the model can be trained\n"), void();
  throw ErrorList(fmt::format("{} cannot be trained as it stands:", arguments.model), inspection.problems);
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("inspect", "parameters, roles and why, loss, and everything that stands in the way of training");
  auto arguments = std::make_shared<Arguments>();  // shared with the callback, which outlives this function
  command->add_option("model", arguments->model, "model.onnx")->required();
  arguments->compile.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace zeroplan
