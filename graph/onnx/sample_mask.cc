#include "graph/onnx/sample_mask.h"

namespace zeroplan {

ValueId SampleMask::valid() {
  if (input_ != kNone) return input_;
  Value value;
  value.name = "samples_that_count";
  value.dtype = DType::boolean;
  value.shape = {samples_};
  value.kind = ValueKind::input;
  input_ = build_.graph().add_value(std::move(value));
  build_.graph().inputs.push_back(input_);
  return input_;
}

ValueId SampleMask::select(ValueId x, const SampleAxis& lie, double otherwise) {
  const Shape shape = build_.shape(x);
  const int64_t length = shape[lie.axis];
  ValueId condition = valid();
  if (length != samples_) {
    std::vector<int64_t> sample_of = build_.list(length);
    for (int64_t i = 0; i < length; ++i) sample_of[i] = i / lie.stride % samples_;
    condition = build_.add(OpKind::gather, {condition, build_.ints(sample_of)}, {{Attr::axis, int64_t{0}}});
  }
  Shape aligned(shape.size() - lie.axis, 1);  // leading axes are broadcast
  aligned[0] = length;
  return build_.add(OpKind::where, {build_.reshape(condition, aligned), x, build_.scalar(otherwise, build_.dtype(x))});
}

ValueId SampleMask::count(DType dtype) {
  return build_.add(OpKind::reduce_sum, {build_.cast(valid(), dtype)},
                    {{Attr::axes, std::vector<int64_t>{0}}, {Attr::keepdims, int64_t{0}}});
}

bool is_sample_mask(const Graph& graph, ValueId id, ValueId input) {
  while (id != input && id != kNone && graph.value(id).producer != kNone) {
    const Node& node = graph.nodes[graph.value(id).producer];
    id = node.op == OpKind::reshape || node.op == OpKind::gather ? node.inputs[0] : kNone;
  }
  return id != kNone && id == input;
}

}  // namespace zeroplan
