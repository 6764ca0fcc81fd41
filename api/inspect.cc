#include "api/import_for.h"
#include "api/zeroplan.h"

namespace zeroplan {

ModelInspection inspect(const ModelFile& file, CompileOptions options) {
  ModelInspection inspection;
  const StatedOptimizer* stated = options.model_optimizer ? file.stated_optimizer() : nullptr;
  const bool refused = stated && stated->kind.empty();
  if (refused) options.model_optimizer = false;
  inspection.model = file.inspect(settle_options(file, options), inspection.problems);
  if (refused) inspection.problems.push_back(stated->problem);
  return inspection;
}

}  // namespace zeroplan
