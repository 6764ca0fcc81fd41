#include "api/import_for.h"
#include "api/zeroplan.h"

namespace zeroplan {

ModelInspection inspect(const ModelFile& file, CompileOptions options) {
  ModelInspection inspection;
  inspection.model = file.inspect(settle_options(file, options), inspection.problems);
  return inspection;
}

}  // namespace zeroplan
