#include "graph/onnx/same_samples.h"

#include <algorithm>
#include <cstring>

#include "graph/ops/scalar_reference.h"

namespace zeroplan {

int64_t inner_elements(const Shape& shape, int axis, int64_t stride) {
  for (size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return stride;
}

AxisPart find_part(const Shape& to, int64_t inner, int64_t samples) {
  int64_t behind = elements(to);
  for (int i = 0; i < static_cast<int>(to.size()); ++i) {
    const int64_t whole = behind;
    behind /= std::max<int64_t>(1, to[i]);
    if (behind > 0 && inner % behind == 0 && whole % (inner * samples) == 0) return {i, inner / behind};
  }
  return {};
}

bool SameSamples::holds(ValueId id, int axis, int64_t stride) {
  if (axis < 0 || shape(id)[axis] == 1) return true;
  if (shape(id)[axis] % (stride * samples_) != 0) return false;
  const auto [entry, added] = known_.try_emplace({id, axis, stride}, false);
  if (added) entry->second = find_out(id, axis, stride);
  return entry->second;
}

// What lies too deep is not known to be the same.
bool SameSamples::find_out(ValueId id, int axis, int64_t stride) {
  constexpr int kDepth = 1000;
  if (depth_ == kDepth) return false;
  ++depth_;
  const bool same = look_at(id, axis, stride);
  --depth_;
  return same;
}

bool SameSamples::look_at(ValueId id, int axis, int64_t stride) {
  const Value& value = graph_.values[id];
  if (value.kind == ValueKind::constant) return constant_holds(value.constant, axis, stride);
  return value.producer != kNone && node_holds(graph_.nodes[value.producer], id, axis, stride);
}

bool SameSamples::constant_holds(const HostTensor& tensor, int axis, int64_t stride) const {
  const int64_t inner = inner_elements(tensor.shape(), axis, stride), size = dtype_bytes(tensor.dtype());
  const std::byte* bytes = tensor.data();
  for (int64_t block = 0; block < tensor.count(); block += inner)
    if (std::memcmp(bytes + block * size, bytes + (block - block / inner % samples_ * inner) * size, inner * size) != 0) return false;
  return true;
}

bool SameSamples::node_holds(const Node& node, ValueId id, int axis, int64_t stride) {
  if (elementwise_arity(node.op) > 0 || node.op == OpKind::broadcast || node.op == OpKind::copy)
    return aligned_hold(node, rank(id), axis, stride);
  const ValueId x = node.inputs.empty() ? kNone : node.inputs[0];
  switch (node.op) {
    case OpKind::fill:
    case OpKind::random_uniform: return true;  // noise of its own for each sample
    case OpKind::reshape: {
      const AxisPart part = find_part(shape(x), inner_elements(shape(id), axis, stride), samples_);
      return part.axis >= 0 && holds(x, part.axis, part.stride);
    }
    case OpKind::transpose: return holds(x, static_cast<int>(node.attributes.get_ints(Attr::permutation)[axis]), stride);
    case OpKind::slice:
    case OpKind::slice_grad: return shape(x)[axis] == shape(id)[axis] && holds(x, axis, stride);
    case OpKind::concat: return joined_hold(node, rank(id), axis, stride);
    case OpKind::softmax:
    case OpKind::layer_norm:
    case OpKind::rms_norm: return axis + 1 < rank(id) && holds(x, axis, stride);
    case OpKind::conv:
    case OpKind::conv_grad_input:
    case OpKind::average_pool: return axis == 0 && holds(x, axis, stride);
    case OpKind::gather: return gathered_holds(node, axis, stride);
    case OpKind::matmul: return product_holds(node, rank(id), axis, stride);
    default: return false;
  }
}

// NumPy broadcasting: axes are counted from the end.
bool SameSamples::aligned_hold(const Node& node, int rank, int axis, int64_t stride) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId in) { return in == kNone || holds(in, axis - rank + this->rank(in), stride); });
}

// Along the joined axis: one operand again and again, such as the rows of a table repeated for each sample.
bool SameSamples::joined_hold(const Node& node, int rank, int axis, int64_t stride) {
  if (axis != node.attributes.get_int(Attr::axis)) return aligned_hold(node, rank, axis, stride);
  const ValueId x = node.inputs[0];
  const bool one = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return in == x; });
  return one && (stride % shape(x)[axis] == 0 || holds(x, axis, stride));
}

bool SameSamples::gathered_holds(const Node& node, int axis, int64_t stride) {
  const int first = static_cast<int>(node.attributes.get_int(Attr::axis)), many = rank(node.inputs[1]);
  const int shared = node.attributes.has(Attr::axes) ? static_cast<int>(node.attributes.get_ints(Attr::axes).size()) : 0;
  if (axis < shared && !holds(node.inputs[1], axis, stride)) return false;
  if (axis < first) return holds(node.inputs[0], axis, stride);
  if (axis < first + many - shared) return holds(node.inputs[1], axis - first + shared, stride);
  return holds(node.inputs[0], axis - many + shared + 1, stride);
}

bool SameSamples::product_holds(const Node& node, int rank, int axis, int64_t stride) {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  if (this->rank(a) < 2 || this->rank(b) < 2) return false;
  const int from_end = rank - 1 - axis;
  const bool rows = from_end == 0 || holds(a, this->rank(a) - 1 - from_end, stride);
  return rows && (from_end == 1 || holds(b, this->rank(b) - 1 - from_end, stride));
}

}  // namespace zeroplan
