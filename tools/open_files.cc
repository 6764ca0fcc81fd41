#include "tools/open_files.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

template <typename Open>
bool opens(Open&& open) {
  try {
    open();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

ModelFile open_model(const std::string& path) {
  try {
    return ModelFile(path);
  } catch (const Error&) {
    Plan plan;
    if (!opens([&] { plan = load_plan(path); })) throw;
    throw Error(fmt::format(
        "'{}' is a plan, not a model: `zeroplan run {}` trains from it; this command takes the model that it was compiled from ({})", path,
        path, plan.header.model_path));
  }
}

Plan open_plan(const std::string& path) {
  try {
    return load_plan(path);
  } catch (const Error&) {
    if (!opens([&] { ModelFile{path}; })) throw;
    throw Error(fmt::format("'{0}' is an ONNX model, not a plan: compile it first with `zeroplan compile {0} -o model.zplan`", path));
  }
}

}  // namespace zeroplan
