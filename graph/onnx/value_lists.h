#pragma once
// Sequences and optionals of a model, which exist at import alone: a sequence is a list of values, whose length and positions are known; an
// optional is its value, or nothing. Their ids lie below kNone and name no value of the graph.
#include <optional>
#include <vector>

#include "graph/onnx/folding_builder.h"
#include "graph/onnx/model.h"

namespace zeroplan {

class ValueLists {
 public:
  explicit ValueLists(FoldingBuilder& build) : build_(build) {}

  static constexpr ValueId kNothing = kNone - 1;  // an optional without a value
  static bool is_list(ValueId id) { return id < kNothing; }
  static bool is_value(ValueId id) { return id >= 0; }

  ValueId make(std::vector<ValueId> items);             // throws Error where the sequences of a model grow too large
  const std::vector<ValueId>& items(ValueId id) const;  // throws Error where `id` is no sequence
  // The result of an operator that makes or takes sequences or optionals; none: it is another operator. Throws Error where another
  // operator is given one.
  std::optional<ValueId> decode(const OnnxNode& node, const std::vector<ValueId>& inputs);

 private:
  using Inputs = std::vector<ValueId>;
  ValueId construct(const OnnxNode& node, const Inputs& inputs);
  ValueId at(const OnnxNode& node, const Inputs& inputs);
  ValueId insert(const OnnxNode& node, const Inputs& inputs);
  ValueId erase(const OnnxNode& node, const Inputs& inputs);
  ValueId length(const OnnxNode& node, const Inputs& inputs);
  ValueId concat(const OnnxNode& node, const Inputs& inputs);
  ValueId split(const OnnxNode& node, const Inputs& inputs);
  ValueId wrap(const OnnxNode& node, const Inputs& inputs);
  ValueId has_element(const OnnxNode& node, const Inputs& inputs);
  ValueId get_element(const OnnxNode& node, const Inputs& inputs);
  int64_t position(const Inputs& inputs, size_t input, int64_t size, int64_t places) const;
  ValueId tensor(const Inputs& inputs, size_t input) const;

  FoldingBuilder& build_;
  std::vector<std::vector<ValueId>> lists_;
  size_t total_ = 0;
};

bool makes_or_takes_lists(const OnnxNode& node);

}  // namespace zeroplan
