#include "passes/lower/plan_header.h"

#include "passes/lower/cost_model.h"

namespace zeroplan {

PlanHeader plan_header(const CompileOptions& options, const Loss& loss, int max_live_units) {
  PlanHeader header;
  header.ranks = options.ranks;
  header.batch = options.batch;
  header.micro_batches = options.micro_batches;
  header.stage = options.stage;
  header.device = options.device;
  header.reduce = options.reduce;
  header.threads = options.threads;
  header.precision = options.precision;
  header.optimizer = std::string(optimizer_name(options.optimizer));
  header.momentum = options.momentum;
  header.prefetch = options.prefetch;
  header.max_live_units = max_live_units;
  header.loss = loss.description;
  header.cost_source = kCostSource;
  return header;
}

}  // namespace zeroplan
