#pragma once
// Run options that a model's own optimizer states, kept in the plan.
#include <set>
#include <string>

#include "api/training_run.h"
#include "graph/onnx/stated_optimizer.h"
#include "runtime/plan/plan.h"

namespace zeroplan {

// Appends them to the options in the plan's header, as model-lr, model-betas, ….
void keep_stated(const StatedOptimizer& optimizer, Plan& plan);
// Puts those of the plan into `options`, except the ones that the user has given, by option name: "lr", "betas", ….
void take_stated(const Plan& plan, const std::set<std::string>& given, RunOptions& options);

}  // namespace zeroplan
