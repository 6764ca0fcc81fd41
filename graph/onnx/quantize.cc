#include "graph/onnx/quantize.h"

#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"

namespace zeroplan {
namespace {

constexpr int kMostMoves = 256;  // between a rounding and its reader

// Inputs that such a node moves or chooses from without computing with them; empty: it is another.
std::vector<size_t> moved_inputs(const Node& node) {
  switch (node.op) {
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::slice:
    case OpKind::broadcast:
    case OpKind::gather: return {0};
    case OpKind::maximum:
    case OpKind::minimum: return {0, 1};
    case OpKind::where: return {1, 2};
    case OpKind::concat: {
      std::vector<size_t> all(node.inputs.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      return all;
    }
    default: return {};
  }
}

// Reads integers back through the nodes that moved them.
class Origins {
 public:
  Origins(FoldingBuilder& build, DType dtype) : build_(build), dtype_(dtype) {}

  ValueId of(ValueId id, int depth = 0) {
    const auto found = known_.find(id);
    if (found != known_.end()) return found->second;
    const ValueId result = find(id, depth);
    return known_[id] = result == kNone ? build_.cast(id, dtype_) : result;
  }

 private:
  ValueId find(ValueId id, int depth) {
    const NodeId producer = build_.graph().values[id].producer;
    if (producer == kNone || !leads_to_rounding(id)) return kNone;
    if (depth == kMostMoves) throw Error(fmt::format("more than {} nodes move its quantised input", kMostMoves));
    Node node = build_.graph().nodes[producer];  // a copy: nodes are added below
    if (node.op == OpKind::cast) return build_.cast(node.inputs[0], dtype_);
    for (const size_t i : moved_inputs(node)) node.inputs[i] = of(node.inputs[i], depth + 1);
    return build_.add(node.op, node.inputs, node.attributes);
  }

  bool leads_to_rounding(ValueId id, int depth = 0) {
    const auto found = leads_.find(id);
    if (found != leads_.end()) return found->second;
    const NodeId producer = build_.graph().values[id].producer;
    bool leads = false;
    if (producer != kNone && depth <= kMostMoves) {
      const Node& node = build_.graph().nodes[producer];
      leads = node.op == OpKind::cast && node.attributes.get_int(Attr::straight_through, 0) != 0;
      for (const size_t i : moved_inputs(node)) leads = leads_to_rounding(node.inputs[i], depth + 1) || leads;
    }
    return leads_[id] = leads;
  }

  FoldingBuilder& build_;
  const DType dtype_;
  std::map<ValueId, ValueId> known_;
  std::map<ValueId, bool> leads_;
};

Term per_place(Term numbers, Shape shape, int64_t axis, const char* what) {
  if (numbers.rank() != 1 || axis >= static_cast<int64_t>(shape.size()) || numbers.shape()[0] != shape[axis])
    throw Error(fmt::format("its {} of shape {} does not have one number per place of axis {} of {}", what, to_string(numbers.shape()),
                            axis, to_string(shape)));
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  return numbers.reshape(along);
}

Term per_block(Term numbers, Shape shape, int64_t axis, int64_t block, const char* what) {
  Shape blocks = shape;
  if (axis < static_cast<int64_t>(shape.size())) blocks[axis] = ceil_div(shape[axis], block);
  if (numbers.shape() != blocks)
    throw Error(fmt::format("its {} of shape {} does not have one number per block of {} places of axis {} of {}", what,
                            to_string(numbers.shape()), block, axis, to_string(shape)));
  Shape apart = blocks;
  apart.insert(apart.begin() + axis + 1, 1);
  Term spaced = numbers.reshape(apart);
  apart[axis + 1] = block;
  blocks[axis] = checked_mul(blocks[axis], block);
  return part(spaced.broadcast(apart).reshape(blocks), axis, 0, shape[axis]);
}

}  // namespace

bool is_quantised(DType dtype) { return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::u16 || dtype == DType::i16; }

Term spread(Term numbers, Shape shape, int64_t axis, int64_t block, const char* what) {
  if (block > 0) return per_block(numbers, shape, axis, block, what);
  if (block < 0) throw Error(fmt::format("its block size of {} is negative", block));
  if (numbers.rank() <= 1 && elements(numbers.shape()) == 1) return numbers.reshape({});
  return per_place(numbers, shape, axis, what);
}

Term rounded(Term ratio, const Term* zero, DType dtype) {
  double low = 0, high = 0;
  visit_dtype(dtype, [&](auto type) {
    using Limits = std::numeric_limits<decltype(type)>;
    low = static_cast<double>(Limits::lowest()), high = static_cast<double>(Limits::max());
  });
  const Term whole = apply(OpKind::round, ratio, {{Attr::straight_through, int64_t{1}}});
  const Term moved = zero ? whole + *zero : whole;
  return where(moved < low, low, where(moved > high, high, moved));
}

Term as_integers(Term whole, DType dtype) {
  return apply(OpKind::cast, whole, {{Attr::dtype, std::string(dtype_name(dtype))}, {Attr::straight_through, int64_t{1}}});
}

Term detached(Term x) {
  return apply(OpKind::cast, x, {{Attr::dtype, std::string(dtype_name(x.dtype()))}, {Attr::straight_through, int64_t{0}}});
}

Term whole_numbers(Term integers, DType dtype) { return {integers.build(), Origins(integers.build(), dtype).of(integers.id())}; }

}  // namespace zeroplan
