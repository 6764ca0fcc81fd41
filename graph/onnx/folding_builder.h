#pragma once
// Builds nodes of the internal form; what depends on constants alone becomes a constant at once.
#include <map>
#include <string>
#include <vector>

#include "graph/onnx/rounded_values.h"
#include "graph/ops/builder.h"

namespace zeroplan {

class FoldingBuilder {
 public:
  explicit FoldingBuilder(Graph& graph) : build_(graph) {}

  void set_origin(const std::string& origin) { build_.origin = origin; }
  ValueId add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_multi(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId constant(HostTensor tensor);
  ValueId scalar(double value, DType dtype);                      // throws Error where an integer type does not hold the value
  ValueId filled(double value, const Shape& shape, DType dtype);  // a constant where it is small
  int64_t constant_bytes() const { return constant_bytes_; }      // that constants were made of so far
  ValueId ints(const std::vector<int64_t>& values);
  // Contents that a decoder works out, zero-filled: how large they are is up to the file, and refused where it is too much.
  HostTensor table(DType dtype, const Shape& shape);
  std::vector<int64_t> list(int64_t count);
  std::vector<int64_t> counting(int64_t count);  // 0, 1, …
  // Number `copy` of a name's copies, from 0: each call counts one more.
  int next_copy(const std::string& name) { return copies_[name]++; }

  RoundedValues& rounded() { return rounded_; }

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
  struct Cost {
    int64_t bytes = 0;
    double work = 0;
  };
  bool foldable(const Node& node, const std::vector<ValueId>& inputs, Cost& cost) const;
  void check_room(const Shape& shape, DType dtype);
  Builder build_;
  int64_t folded_total_ = 0, constant_bytes_ = 0;
  double work_total_ = 0;
  std::map<std::string, int> copies_;
  RoundedValues rounded_;
};

}  // namespace zeroplan
