// Views: the tensor of a viewed value must be what the source graph's view nodes make of its root's tensor.
#include <algorithm>
#include <exception>

#include "graph/ops/op_def.h"
#include "runtime/plan/verify_cells.h"

namespace zeroplan {
namespace {

// Axes of size 1 have no stride that matters; a tensor without elements has no geometry at all.
bool same_strides(const Shape& shape, const Strides& a, const Strides& b) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && a[i] != b[i]) return false;
  return true;
}

Shape view_shape(const SourceNode& view, const Shape& in) {
  if (view.op != OpKind::transpose) return view.attributes.get_ints(Attr::shape);
  Shape shape;
  for (int64_t axis : view.attributes.get_ints(Attr::permutation)) shape.push_back(in.at(axis));
  return shape;
}

constexpr int kLongestChain = 256;  // of views; a longer one is a cycle in a broken plan

}  // namespace

int32_t ValueMatcher::view_of(int32_t value) const {
  const int32_t node = value == kNone ? kNone : context_.source_of[copies_.original(value)];
  if (node == kNone || op_class(context_.plan.source[node].op) != OpClass::view) return kNone;
  return context_.plan.source[node].inputs.empty() ? kNone : node;
}

int32_t ValueMatcher::root(int32_t value) const {
  for (int i = 0; i < kLongestChain; ++i) {
    const int32_t node = view_of(value);
    if (node == kNone) return copies_.original(value);
    value = context_.plan.source[node].inputs[0];
  }
  return value;
}

bool ValueMatcher::base_layout(int32_t value, const Cell& cell, Layout& layout) const {
  if (cell.tensor == kNone) return false;
  const PlanTensor& t = context_.plan.tensors[cell.tensor];
  if (cell.value != kNone && copies_.same(value, cell.value)) {
    layout = {t.dtype, t.shape, t.strides, t.offset};
    return true;
  }
  const int32_t parameter = value == kNone ? kNone : context_.parameter_of[copies_.original(value)];
  if (parameter == kNone || cell.weights_of == kNone || context_.plan.parameters[parameter].unit != cell.weights_of) return false;
  const PlanParameter& p = context_.plan.parameters[parameter];
  layout = {t.dtype, p.parameter.shape, contiguous_strides(p.parameter.shape), t.offset + p.offset * dtype_bytes(t.dtype)};
  return true;
}

bool ValueMatcher::apply_view(int32_t value, Layout& layout) const {
  const SourceNode& view = context_.plan.source[view_of(value)];
  const OpDef& def = op_def(view.op);
  if (!def.view) return false;
  Node node;
  node.op = view.op;
  node.attributes = view.attributes;
  int64_t offset = 0;
  bool possible = true;
  Strides strides;
  try {
    def.view(node, 0, layout.shape, layout.strides, strides, offset, possible);
    layout.shape = view_shape(view, layout.shape);
  } catch (const std::exception&) {
    return false;  // attributes that do not fit
  }
  layout.strides = std::move(strides);
  layout.offset += offset * dtype_bytes(layout.dtype);
  return possible && layout.strides.size() == layout.shape.size();
}

bool ValueMatcher::matches(const Operand& read, const Cell& cell) const {
  if (read.value == kNone) return false;
  if (cell.token != kNone && cell.token == read.value && cell.token_tensor == read.tensor) return true;
  if (read.tensor == cell.tensor && cell.value != kNone && copies_.same(read.value, cell.value)) return true;
  std::vector<int32_t> chain;
  Layout layout;
  int32_t value = read.value;
  while (!base_layout(value, cell, layout)) {
    const int32_t node = view_of(value);
    if (node == kNone || chain.size() > kLongestChain) return false;
    chain.push_back(value);
    value = context_.plan.source[node].inputs[0];
  }
  const PlanTensor& t = context_.plan.tensors[read.tensor];
  const PlanTensor& written = context_.plan.tensors[cell.tensor];
  if (t.per_rank != written.per_rank)  // a rank's own part of a buffer that is there as a whole
    return t.per_rank && chain.empty() && t.offset == layout.offset && t.dtype == layout.dtype &&
           context_.ranges[read.tensor] == context_.ranges[cell.tensor];
  for (auto it = chain.rbegin(); it != chain.rend(); ++it)
    if (!apply_view(*it, layout)) return false;
  return t.dtype == layout.dtype && t.shape == layout.shape && t.offset == layout.offset &&
         same_strides(t.shape, t.strides, layout.strides);
}

}  // namespace zeroplan
