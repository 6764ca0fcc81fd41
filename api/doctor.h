#pragma once
// Measurements that tell whether a model trains as its user thinks: what `zeroplan doctor` prints.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/zeroplan.h"
#include "runtime/data/data_source.h"

namespace zeroplan {

// The data of a plan: plans of one model may differ in the inputs that they need.
using OpenData = std::function<std::unique_ptr<DataSource>(const Plan&)>;

// One parameter moved along one random direction: what the built gradient says that the loss does, and what it does.
struct DirectionCheck {
  std::string parameter;
  double built = 0;      // gradient · direction
  double numeric = 0;    // central difference of the loss
  bool rounded = false;  // rounding between it and the loss is passed straight through: a difference says nothing, and none was taken
  bool agrees = false;
};

// The directional derivatives of the first batch, in double, of up to `most` parameters spread over the model. Options as for training;
// precision and optimizer are chosen here. Throws what compile throws.
std::vector<DirectionCheck> check_directions(const ModelFile& file, CompileOptions options, const OpenData& data, int most);

// A tie or a split that the import decided, and the loss of the last of `steps` training steps with and without it.
struct DecisionEffect {
  std::string text;  // "'a' and 'b' are one parameter"
  double loss = 0, otherwise = 0;
};
std::vector<DecisionEffect> decision_effects(const ModelFile& file, CompileOptions options, const OpenData& data, int64_t steps);

}  // namespace zeroplan
