#include "graph/ops/gradient_sum.h"

#include <algorithm>

namespace zeroplan {
namespace {

struct Piece {
  int64_t start = 0, length = 0;
  ValueId value = kNone;
};

// The axis on which the slice differs from the whole; kNone where it is not exactly one, or strided.
int64_t sliced_axis(const Shape& whole, const Shape& part, const std::vector<int64_t>& steps) {
  int64_t axis = kNone;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (steps[i] != 1) return kNone;
    if (part[i] == whole[i]) continue;
    if (axis != kNone) return kNone;
    axis = static_cast<int64_t>(i);
  }
  return axis;
}

}  // namespace

const Node* GradientSum::slice_gradient(ValueId id) const {
  const NodeId producer = graph_.values[id].producer;
  return producer != kNone && graph_.nodes[producer].op == OpKind::slice_grad ? &graph_.nodes[producer] : nullptr;
}

// In float32; a slice stays one, so that it may join its neighbours.
ValueId GradientSum::widened(ValueId gradient) {
  const DType dtype = wide_dtype(graph_.values[gradient].dtype);
  const Node* slice = slice_gradient(gradient);
  if (!slice || graph_.values[gradient].dtype == dtype) return build_.cast(gradient, dtype);
  const Node copy = *slice;  // building nodes moves the original
  return build_.add(OpKind::slice_grad, {build_.cast(copy.inputs[0], dtype)}, copy.attributes);
}

void GradientSum::contribute(ValueId value, ValueId gradient) {
  if (graph_.values[value].kind == ValueKind::parameter) gradient = widened(gradient);
  std::vector<ValueId>& parts = parts_[value];
  // Added at once, so that no contribution is held longer than needed; slices wait for their neighbours.
  if (parts.size() == 1 && !slice_gradient(parts[0]) && !slice_gradient(gradient)) {
    parts[0] = build_.add(OpKind::add, {parts[0], gradient});
  } else {
    parts.push_back(gradient);
  }
}

ValueId GradientSum::total(ValueId value) {
  const auto found = parts_.find(value);
  if (found == parts_.end()) return kNone;
  std::vector<ValueId>& parts = found->second;
  join_slices(parts);
  while (parts.size() > 1) {
    parts[1] = build_.add(OpKind::add, {parts[0], parts[1]});
    parts.erase(parts.begin());
  }
  return parts[0];
}

// The slices among the contributions, where they tile the value; their concat takes the place of the first.
void GradientSum::join_slices(std::vector<ValueId>& parts) {
  std::vector<ValueId> slices;
  for (ValueId part : parts)
    if (slice_gradient(part)) slices.push_back(part);
  const std::optional<ValueId> whole = slices.size() > 1 ? concat_slices(slices) : std::nullopt;
  if (!whole) return;
  *std::find(parts.begin(), parts.end(), slices[0]) = *whole;
  std::erase_if(parts, [&](ValueId part) { return slice_gradient(part) != nullptr; });
}

std::optional<ValueId> GradientSum::concat_slices(const std::vector<ValueId>& parts) {
  std::vector<Piece> pieces;
  int64_t axis = kNone;
  for (ValueId part : parts) {
    const Node* node = slice_gradient(part);
    const Shape& whole = graph_.values[part].shape;
    const Shape& shape = graph_.values[node->inputs[0]].shape;
    const int64_t own = sliced_axis(whole, shape, node->attributes.get_ints(Attr::steps));
    if (own == kNone || (axis != kNone && own != axis)) return std::nullopt;
    axis = own;
    pieces.push_back({node->attributes.get_ints(Attr::starts)[axis], shape[axis], node->inputs[0]});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.start < b.start; });
  int64_t end = 0;
  std::vector<ValueId> values;
  for (const Piece& piece : pieces) {
    if (piece.start != end) return std::nullopt;
    end += piece.length;
    values.push_back(piece.value);
  }
  if (end != graph_.values[parts[0]].shape[axis]) return std::nullopt;
  return build_.add(OpKind::concat, values, {{Attr::axis, axis}});
}

}  // namespace zeroplan
