#pragma once
// Builds nodes of the internal form; what depends on constants alone becomes a constant at once.
#include <vector>

#include "graph/ops/builder.h"

namespace zeroplan {

class FoldingBuilder {
 public:
  explicit FoldingBuilder(Graph& graph) : build_(graph) {}

  void set_origin(const std::string& origin) { build_.origin = origin; }
  ValueId add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId constant(HostTensor tensor) { return build_.constant(std::move(tensor)); }
  ValueId scalar(double value, DType dtype) { return build_.scalar(value, dtype); }
  ValueId ints(const std::vector<int64_t>& values);

  // These return the operand itself where nothing changes.
  ValueId reshape(ValueId x, const Shape& shape);
  ValueId transpose(ValueId x, const std::vector<int64_t>& permutation);
  ValueId broadcast(ValueId x, const Shape& shape);
  ValueId cast(ValueId x, DType dtype);

  bool is_constant(ValueId id) const { return graph().values[id].kind == ValueKind::constant; }
  const Shape& shape(ValueId id) const { return graph().values[id].shape; }
  DType dtype(ValueId id) const { return graph().values[id].dtype; }
  Graph& graph() const { return const_cast<Builder&>(build_).graph(); }

 private:
  bool foldable(const Node& node, const std::vector<ValueId>& inputs, int64_t& bytes) const;
  Builder build_;
  int64_t folded_total_ = 0;
};

}  // namespace zeroplan
