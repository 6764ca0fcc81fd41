#pragma once
// The loss of a model that was decoded: its labels, its form, and which samples it can leave out.
#include <string>
#include <vector>

#include "graph/onnx/more_samples.h"

namespace zeroplan {

class LossImport {
 public:
  // All arguments must outlive it. `dims` gets the labels' input where one is added.
  LossImport(const ModelSource& source, BoundDims& dims, GraphDecoder& decoder, Graph& graph)
      : source_(source), spec_(source.spec), options_(source.options), dims_(dims), decoder_(decoder), graph_(graph) {}

  void run();  // sets Graph::loss
  // The input that says which samples count; kNone: a micro-batch has one sample, or they cannot be told apart.
  ValueId mask() const { return mask_; }
  // Why they cannot, as a line of the report.
  const std::string& unmasked() const { return unmasked_; }
  // What is odd about the built-in and what it reads, as lines of the report.
  const std::vector<std::string>& remarks() const { return remarks_; }
  int64_t classes() const { return classes_; }  // that the labels of a built-in may name; 0: it has none

 private:
  void find_batch_statistics();
  void find_probabilities(ValueId output);
  MoreSamples read_more(ValueId output, const std::vector<SampleAxis>& once);
  void attach(ValueId loss, const MoreSamples& more);
  void check_output(ValueId output) const;
  ValueId label_input(ValueId scores, const SampleAxis& lie);
  ValueId weight_input();
  std::string what_is(ValueId labels) const;
  void check_known(ValueId labels, const Shape& shape, int along) const;
  int scores_axis(ValueId scores, const SampleAxis& lie) const;
  int label_axis(const Shape& shape, int along) const;
  void check_along(int axis, int along) const;
  int axis_of(const std::string& input) const;

  const ModelSource source_;
  const LossSpec& spec_;
  const ImportOptions& options_;
  BoundDims& dims_;
  GraphDecoder& decoder_;
  Graph& graph_;
  ValueId mask_ = kNone;
  int64_t classes_ = 0;
  std::string unmasked_;
  std::vector<std::string> remarks_;
};

}  // namespace zeroplan
