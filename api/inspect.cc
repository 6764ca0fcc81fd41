#include "api/import_for.h"
#include "api/zeroplan.h"

namespace zeroplan {

ModelInspection inspect(const std::string& model_path, CompileOptions options) {
  ModelInspection inspection;
  const ImportOptions import = settle_options(model_path, options);
  inspection.model = inspect_model(model_path, import, inspection.problems);
  return inspection;
}

}  // namespace zeroplan
