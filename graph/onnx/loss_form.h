#pragma once
// The last nodes of a loss, read as a sum over samples divided by a weight.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/sample_axes.h"
#include "graph/onnx/sample_mask.h"

namespace zeroplan {

struct LossForm {
  static LossForm of_sum(ValueId sum, std::string description, const std::string& origin);  // with no divisor

  enum class Divisor : uint8_t {
    none,      // a final sum
    constant,  // `full`, for a micro-batch whose samples all count
    data,      // `weight`
  };
  ValueId sum = kNone;
  Divisor divisor = Divisor::none;
  double full = 1;
  bool by_samples = false;            // constant: full · (samples that count / samples)
  ValueId weight = kNone;             // data
  ValueId denominator = kNone;        // data: the value of the model that `weight` stands for
  std::vector<double> factors = {1};  // constants that the model multiplies each term by
  std::string description;
  std::string origin;  // node that the last term ends in
};

class LossReader {
 public:
  // `sample_axes`: of the inputs that have one. `mask`: null where every sample counts. `whole`: there is one micro-batch, so that terms
  // with different denominators can be divided apart.
  LossReader(FoldingBuilder& build, const std::map<ValueId, int>& sample_axes, SampleMask* mask, bool whole);

  // Empty where the value is neither a mean nor a sum of terms that add up. Adds nodes.
  std::optional<LossForm> read(ValueId id) { return analyze(id, 0); }
  // False: what was read holds samples that do not count, as they could not be told apart.
  bool masked() const { return masked_; }
  const std::string& conflict() const { return conflict_; }  // what could not be brought to one denominator; empty: nothing

 private:
  std::optional<LossForm> analyze(ValueId id, int depth);
  std::optional<LossForm> read_node(ValueId id, int depth);
  std::optional<LossForm> product(const Node& node, int depth);
  std::optional<LossForm> quotient(const Node& node, int depth);
  std::optional<LossForm> reduction(const Node& node, int depth);
  std::optional<LossForm> entropy_sum(ValueId id, NodeId producer);
  std::optional<LossForm> entropy_mean(const Node& node);
  std::optional<LossForm> over_data(const Node& node, ValueId total, LossForm form);
  std::optional<LossForm> combined(const Node& node, double sign, int depth);
  std::optional<LossForm> scaled(std::optional<LossForm> form, double factor);
  LossForm joined(LossForm a, const LossForm& b, double factor);
  LossForm closed(LossForm form);

  std::optional<double> constant_scalar(ValueId id) const;
  ValueId times(ValueId x, double factor);
  ValueId total(ValueId x);
  ValueId chosen(ValueId x);  // its terms that count
  ValueId chosen_operand(NodeId reduction);
  const std::vector<ValueId>& chosen_entropy(NodeId entropy);
  std::vector<ValueId> weighted_entropy(const Node& entropy);
  ValueId masked_total(NodeId reduction, ValueId total);
  bool has_rows_of_samples(const Node& entropy) const;
  ValueId data_total(ValueId id) const;
  bool depends_on_parameters(ValueId id) const;
  bool folded_by(ValueId x, OpKind op) const;

  FoldingBuilder& build_;
  std::vector<SampleAxis> samples_;  // of the values that were there before
  SampleMask* mask_;
  const bool whole_;
  bool masked_ = true;
  std::map<NodeId, std::vector<ValueId>> entropies_;
  std::map<ValueId, ValueId> totals_;
  std::map<ValueId, std::optional<LossForm>> read_;  // a value may be read along many ways
  std::string conflict_;
};

}  // namespace zeroplan
