#include "graph/onnx/terms.h"

#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

Term slice(Term x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps, const Shape& shape) {
  return apply(OpKind::slice, x, {{Attr::starts, starts}, {Attr::steps, steps}, {Attr::shape, shape}});
}

Term part(Term x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  Shape shape = x.shape();
  if (axis < 0 || axis >= x.rank()) throw Error(fmt::format("an operand of shape {} has no axis {}", to_string(shape), axis));
  if (start == 0 && step == 1 && shape[axis] == count) return x;
  std::vector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[axis] = start;
  steps[axis] = step;
  shape[axis] = count;
  return slice(x, starts, steps, shape);
}

Term item(Term x, int64_t axis, int64_t place) {
  const Term one = part(x, axis, place, 1);
  Shape shape = one.shape();
  shape.erase(shape.begin() + axis);
  return one.reshape(shape);
}

Term stack(const std::vector<Term>& items, int64_t axis) {
  std::vector<Term> parts;
  for (const Term& each : items) {
    Shape shape = each.shape();
    if (shape != items[0].shape())
      throw Error(fmt::format("what it stacks has different shapes: {} and {}", to_string(items[0].shape()), to_string(shape)));
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(each.reshape(shape));
  }
  return concat(parts, axis);
}

std::vector<Term> terms_of(FoldingBuilder& build, const std::vector<ValueId>& ids) {
  std::vector<Term> terms;
  for (const ValueId id : ids) terms.emplace_back(build, id);
  return terms;
}

Term gather_rows(Term table, Term indices) {
  const Attributes attributes = {{Attr::axis, int64_t{1}}, {Attr::axes, std::vector<int64_t>{0}}};
  return {table.build(), table.build().add(OpKind::gather, {table.id(), indices.id()}, attributes)};
}

Term concat(const std::vector<Term>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  std::vector<ValueId> ids;
  for (const Term& each : parts) ids.push_back(each.id());
  return {parts[0].build(), parts[0].build().add(OpKind::concat, std::move(ids), {{Attr::axis, axis}})};
}

namespace {

std::vector<int64_t> with_last(int64_t rank, int64_t axis) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + axis);
  order.push_back(axis);
  return order;
}

}  // namespace

Term axis_last(Term x, int64_t axis) { return x.transpose(with_last(x.rank(), axis)); }

Term axis_back(Term x, int64_t axis) {
  const std::vector<int64_t> order = with_last(x.rank(), axis);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  return x.transpose(back);
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
