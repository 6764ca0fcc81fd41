#include "graph/onnx/sample_mask.h"

namespace zeroplan {

ValueId SampleMask::valid() {
  if (!fills_ || input_ != kNone) return input_;
  Value value;
  value.name = "samples_that_count";
  value.dtype = DType::boolean;
  value.shape = {samples_};
  value.kind = ValueKind::input;
  input_ = build_.graph().add_value(std::move(value));
  build_.graph().inputs.push_back(input_);
  return input_;
}

// A weight that is no number counts, so that the loss shows it.
ValueId SampleMask::counts() {
  const ValueId valid = this->valid();
  if (!weighted()) return valid;
  const ValueId none = build_.add(OpKind::equal, {weights_, build_.scalar(0, build_.dtype(weights_))});
  const ValueId some = build_.add(OpKind::logical_not, {none});
  return valid == kNone ? some : build_.add(OpKind::logical_and, {valid, some});
}

// What each sample has, where the samples of a value of `shape` lie; leading axes are broadcast.
ValueId SampleMask::spread(ValueId each, const Shape& shape, const SampleAxis& lie) {
  if (samples_ == 1) return build_.reshape(each, {});
  const int64_t length = shape[lie.axis];
  if (length != samples_) {
    std::vector<int64_t> sample_of = build_.list(length);
    for (int64_t i = 0; i < length; ++i) sample_of[i] = i / lie.stride % samples_;
    each = build_.add(OpKind::gather, {each, build_.ints(sample_of)}, {{Attr::axis, int64_t{0}}});
  }
  Shape aligned(shape.size() - lie.axis, 1);
  aligned[0] = length;
  return build_.reshape(each, aligned);
}

ValueId SampleMask::select(ValueId x, const SampleAxis& lie, double otherwise) {
  const ValueId valid = this->valid();
  if (valid == kNone) return x;
  return build_.add(OpKind::where, {spread(valid, build_.shape(x), lie), x, build_.scalar(otherwise, build_.dtype(x))});
}

ValueId SampleMask::weigh(ValueId x, const SampleAxis& lie) {
  if (!weighted()) return select(x, lie);
  const ValueId weights = spread(build_.cast(weights_, build_.dtype(x)), build_.shape(x), lie);
  const ValueId product = build_.add(OpKind::mul, {x, weights});
  return build_.add(OpKind::where, {spread(counts(), build_.shape(x), lie), product, build_.scalar(0, build_.dtype(x))});
}

ValueId SampleMask::count(DType dtype) {
  ValueId each = weights_;
  if (!weighted())
    each = build_.cast(valid(), dtype);
  else if (const ValueId valid = this->valid(); valid != kNone)
    each = build_.add(OpKind::where, {valid, weights_, build_.scalar(0, build_.dtype(weights_))});
  return build_.add(OpKind::reduce_sum, {build_.cast(each, dtype)}, {{Attr::axes, std::vector<int64_t>{0}}, {Attr::keepdims, int64_t{0}}});
}

bool is_sample_mask(const Graph& graph, ValueId id, ValueId input) {
  while (id != input && id != kNone && graph.value(id).producer != kNone) {
    const Node& node = graph.nodes[graph.value(id).producer];
    id = node.op == OpKind::reshape || node.op == OpKind::gather ? node.inputs[0] : kNone;
  }
  return id != kNone && id == input;
}

}  // namespace zeroplan
