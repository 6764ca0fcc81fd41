#include "api/import_for.h"
#include "api/zeroplan.h"

namespace zeroplan {

ModelInspection inspect(const std::string& model_path, CompileOptions options) {
  ModelInspection inspection;
  const ModelFile file(model_path);
  inspection.model = file.inspect(settle_options(file, options), inspection.problems);
  return inspection;
}

}  // namespace zeroplan
