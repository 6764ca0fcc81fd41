#include "api/batching.h"
#include "api/import_for.h"
#include "api/zeroplan.h"
#include "base/error.h"

namespace zeroplan {

ModelInspection inspect(const std::string& model_path, CompileOptions options) {
  ModelInspection inspection;
  try {
    inspection.model = import_for(model_path, options);
  } catch (const ErrorList& list) {
    inspection.problems = list.problems();
  }
  return inspection;
}

}  // namespace zeroplan
