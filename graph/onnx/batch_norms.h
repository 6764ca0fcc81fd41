#pragma once
// Batch normalizations of a model: which use the statistics of their batch, and the parameters that their running statistics are.
#include "graph/onnx/roles.h"

namespace zeroplan {

class BatchNorms {
 public:
  // Modes by the file's training_mode, --train-bn and --eval-bn; plan.batch_norms gets them. Running statistics that are no stored tensors
  // are problems of the plan.
  BatchNorms(const OnnxModel& model, const ImportOptions& options, RolePlan& plan);
  // Before merged tensors are parted: running statistics that are no parameters yet become some.
  void make_parameters(const ImportOptions& options);
  // After: what such a node reads is its running statistics, and nothing else is.
  void mark_statistics();
  void report(const ImportOptions& options);

 private:
  using Producers = std::map<std::string, const OnnxNode*>;
  // A place in the file where running statistics are read: an input of the node, or of the first Identity in front of it.
  struct Place {
    const OnnxNode* norm = nullptr;
    const OnnxNode* node = nullptr;
    int input = 0;        // of `node`
    int statistic = 0;    // the input of `norm`
    int candidate = -1;   // the tensor
    bool nested = false;  // inside another node
  };
  void visit(const OnnxGraph& graph, const ImportOptions& options, Patterns& train, Patterns& eval);
  void add(const OnnxNode& norm, int input);
  const OnnxNode* producer(const std::string& value) const;
  int stored_candidate(const std::string& value);
  int parameter_at(const Place& place) const;
  int give_own(const Place& place, int merged);

  const OnnxModel& model_;
  RolePlan& plan_;
  std::vector<Producers> scopes_;  // of the graph that is visited and of those around it
  std::vector<Place> places_;
  std::set<std::string> given_;  // inputs of the model
  bool forward_only_;
  int64_t trained_ = 0, evaluated_ = 0;
};

}  // namespace zeroplan
