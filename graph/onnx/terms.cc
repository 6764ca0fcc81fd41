#include "graph/onnx/terms.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

Term part(Term x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  Shape shape = x.shape();
  if (axis < 0 || axis >= x.rank()) throw Error(fmt::format("an operand of shape {} has no axis {}", to_string(shape), axis));
  if (start == 0 && step == 1 && shape[axis] == count) return x;
  std::vector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[axis] = start;
  steps[axis] = step;
  shape[axis] = count;
  return apply(OpKind::slice, x, {{Attr::starts, starts}, {Attr::steps, steps}, {Attr::shape, shape}});
}

Term concat(const std::vector<Term>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  std::vector<ValueId> ids;
  for (const Term& each : parts) ids.push_back(each.id());
  return {parts[0].build(), parts[0].build().add(OpKind::concat, std::move(ids), {{Attr::axis, axis}})};
}

Term positions(FoldingBuilder& build, int64_t count, int64_t axis, int64_t rank) {
  Shape shape(rank, 1);
  shape[axis] = count;
  return {build, build.reshape(build.ints(build.counting(count)), shape)};
}

namespace {

Term flip_bits(Term x, int64_t bits) {
  HostTensor mask(DType::i64, {});
  mask.set_int(0, bits);
  return apply(OpKind::bit_xor, x, Term(x.build(), x.build().constant(std::move(mask))).cast(x.dtype()));
}

}  // namespace

Term ordered(Term x) { return x.dtype() == DType::u64 ? flip_bits(wide(x), std::numeric_limits<int64_t>::min()) : wide(x); }

Term unordered(Term y, DType dtype) { return (dtype == DType::u64 ? flip_bits(y, std::numeric_limits<int64_t>::min()) : y).cast(dtype); }

Term opposite(Term x) { return is_floating(x.dtype()) ? -x : flip_bits(x, -1); }

Shifted shift_down(Term x, const std::vector<int64_t>& axes) {
  const Term largest = reduce(OpKind::reduce_max, x, axes, true);
  const Term finite = abs(largest) < std::numeric_limits<double>::infinity();
  const Term shift = where(finite, floor(largest), 0);
  return {x - shift, shift};
}

}  // namespace zeroplan
