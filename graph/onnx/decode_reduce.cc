// Reductions; axes are an input (the model was raised to an opset where they are).
#include <algorithm>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

// Sorted axes; all where none are given. `nothing` is set where the node asks for no reduction at all.
std::vector<int64_t> reduced_axes(const DecodeContext& c, bool& nothing) {
  std::vector<int64_t> axes = c.has(1) ? c.ints(1, "axes") : c.attr_ints("axes");
  nothing = axes.empty() && c.attr_int("noop_with_empty_axes", 0) != 0;
  if (axes.empty())
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  for (int64_t& axis : axes) axis = normalize_axis(axis, c.rank(0));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ValueId reduce_with(DecodeContext& c, OpKind op, ValueId x) {
  bool nothing = false;
  const std::vector<int64_t> axes = reduced_axes(c, nothing);
  if (nothing || axes.empty()) return x;
  return c.build.add(op, {x}, {{Attr::axes, axes}, {Attr::keepdims, c.attr_int("keepdims", 1)}});
}

template <OpKind op>
void reduce(DecodeContext& c) {
  c.out(0, reduce_with(c, op, c.in(0)));
}

void reduce_min(DecodeContext& c) {
  const ValueId largest = reduce_with(c, OpKind::reduce_max, c.build.add(OpKind::neg, {c.in(0)}));
  c.out(0, c.build.add(OpKind::neg, {largest}));
}

void reduce_sum_square(DecodeContext& c) { c.out(0, reduce_with(c, OpKind::reduce_sum, c.build.add(OpKind::mul, {c.in(0), c.in(0)}))); }

void reduce_l2(DecodeContext& c) {
  const ValueId sum = reduce_with(c, OpKind::reduce_sum, c.build.add(OpKind::mul, {c.in(0), c.in(0)}));
  c.out(0, c.build.add(OpKind::sqrt, {sum}));
}

void reduce_l1(DecodeContext& c) { c.out(0, reduce_with(c, OpKind::reduce_sum, c.build.add(OpKind::abs, {c.in(0)}))); }

void global_average_pool(DecodeContext& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < c.rank(0); ++i) axes.push_back(i);
  if (axes.empty()) throw Error("its input needs rank 3 or more");
  c.out(0, c.build.add(OpKind::reduce_mean, {c.in(0)}, {{Attr::axes, axes}, {Attr::keepdims, int64_t{1}}}));
}

}  // namespace

void add_reduce_decoders(DecoderTable& t) {
  t["ReduceSum"] = reduce<OpKind::reduce_sum>;
  t["ReduceMean"] = reduce<OpKind::reduce_mean>;
  t["ReduceMax"] = reduce<OpKind::reduce_max>;
  t["ReduceMin"] = reduce_min;
  t["ReduceProd"] = reduce<OpKind::reduce_prod>;
  t["ReduceSumSquare"] = reduce_sum_square;
  t["ReduceL2"] = reduce_l2;
  t["ReduceL1"] = reduce_l1;
  t["GlobalAveragePool"] = global_average_pool;
}

}  // namespace zeroplan
