#pragma once
// Batch normalizations of a model: which use the statistics of their batch, and the parameters that their running statistics are.
#include "graph/onnx/roles.h"

namespace zeroplan {

class BatchNorms {
 public:
  // Modes by the file's training_mode, --train-bn and --eval-bn; plan.batch_norms gets them.
  BatchNorms(const OnnxModel& model, const ImportOptions& options, RolePlan& plan);
  // Before merged tensors are parted: running statistics that are no parameters yet become some.
  void make_parameters(const ImportOptions& options);
  // After: what such a node reads is its running statistics, and nothing else is.
  void mark_statistics();
  void report(const ImportOptions& options);

 private:
  // A place in the file where running statistics are read: an input of the node, or of the first Identity in front of it.
  struct Place {
    const OnnxNode* node = nullptr;
    int input = 0;
    int candidate = -1;  // the initializer; -1: the value is computed
  };
  Place place_of(const OnnxNode& node, int input) const;
  int parameter_at(const Place& place) const;
  int give_own(const Place& place, int merged);

  const OnnxModel& model_;
  RolePlan& plan_;
  std::map<std::string, const OnnxNode*> producers_;
  std::vector<const OnnxNode*> trained_;
  int evaluated_ = 0;
};

}  // namespace zeroplan
