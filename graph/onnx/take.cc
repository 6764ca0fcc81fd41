#include "graph/onnx/take.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

bool evenly_spaced(const std::vector<int64_t>& places) {
  for (size_t i = 2; i < places.size(); ++i)
    if (places[i] - places[i - 1] != places[1] - places[0]) return false;
  return places.size() < 2 || places[1] != places[0];
}

// How often each place of an axis of `size` comes where all come in turn; 0: they do not.
int64_t repeats(const std::vector<int64_t>& places, int64_t size) {
  const int64_t count = static_cast<int64_t>(places.size());
  if (size == 0 || count % size != 0) return 0;
  for (int64_t i = 0; i < count; ++i)
    if (places[i] != i / (count / size)) return 0;
  return count / size;
}

// Number of the element at each position of `shape`, by `strides`; axes with stride 0 have size 1 in the result.
HostTensor numbers(FoldingBuilder& build, const Shape& shape, const Strides& strides) {
  Shape kept = shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if (strides[i] == 0) kept[i] = 1;
  HostTensor out = build.table(DType::i64, kept);
  const Strides own = contiguous_strides(kept);
  for (int64_t n = 0; n < out.count(); ++n) {
    int64_t number = 0;
    for (size_t i = 0; i < kept.size(); ++i) number += n / own[i] % kept[i] * strides[i];
    out.set_int(n, number);
  }
  return out;
}

// An index outside its axis must not name another element: it becomes `outside`, which the kernels refuse.
ValueId checked_index(Arithmetic& a, ValueId given, int64_t size, ValueId linear, int64_t outside) {
  const ValueId inside = a.both(a.below(given, static_cast<double>(size)), a.less(a.number(static_cast<double>(-size - 1), given), given));
  return a.choose(inside, linear, a.number(static_cast<double>(outside), linear));
}

ValueId from_end(Arithmetic& a, ValueId indices, ValueId sizes) { return a.choose(a.below(indices, 0), a.add(indices, sizes), indices); }

}  // namespace

ValueId take(FoldingBuilder& build, ValueId x, int64_t axis, const std::vector<int64_t>& places) {
  const Shape from = build.shape(x);
  if (axis < 0 || axis >= static_cast<int64_t>(from.size()))
    throw Error(fmt::format("an operand of shape {} has no axis {}", to_string(from), axis));
  Shape to = from;
  to[axis] = static_cast<int64_t>(places.size());
  const int64_t many = repeats(places, from[axis]);
  if (many == 1) return x;
  if (evenly_spaced(places)) {
    std::vector<int64_t> starts(from.size(), 0), steps(from.size(), 1);
    starts[axis] = places.empty() ? 0 : places[0];
    steps[axis] = places.size() < 2 ? 1 : places[1] - places[0];
    return Arithmetic(build).slice(x, starts, steps, to);
  }
  if (many > 1 && from.size() < kMaxRank) {
    Shape apart = from;
    apart.insert(apart.begin() + axis + 1, 1);
    Shape spread = apart;
    spread[axis + 1] = many;
    return build.reshape(build.broadcast(build.reshape(x, apart), spread), to);
  }
  return build.add(OpKind::gather, {x, build.ints(places)}, {{Attr::axis, axis}});
}

ValueId take_one(FoldingBuilder& build, ValueId x, int64_t axis, int64_t place) {
  const ValueId taken = take(build, x, axis, {place});
  Shape shape = build.shape(taken);
  shape.erase(shape.begin() + axis);
  return build.reshape(taken, shape);
}

ElementPlaces element_places(FoldingBuilder& build, const Shape& data, ValueId indices, int64_t axis) {
  const Shape shape = build.shape(indices);
  if (shape.size() != data.size()) throw Error(fmt::format("indices {} and data {} differ in rank", to_string(shape), to_string(data)));
  const auto axis_at = static_cast<size_t>(axis);
  size_t first = 0;
  while (first < axis_at && shape[first] == data[first]) ++first;
  ElementPlaces out;
  Strides strides = contiguous_strides(data);
  const int64_t stride = strides[axis];
  for (size_t i = 0; i < data.size(); ++i) {
    if (i != axis_at && shape[i] > data[i]) throw Error(fmt::format("indices {} reach beyond data {}", to_string(shape), to_string(data)));
    (i < first ? out.batch : out.rows) *= data[i];
    if (i >= first) out.count *= shape[i];
    if (i < first || i == axis_at) strides[i] = 0;
  }
  Arithmetic a(build);
  const ValueId given = build.cast(indices, DType::i64);
  ValueId linear = given;
  // Rows of one axis and what lies behind it: the kernels count negative numbers from the end themselves.
  if (first != axis_at) linear = from_end(a, given, a.number(static_cast<double>(data[axis]), given));
  linear = a.times(linear, static_cast<double>(stride));
  if (HostTensor base = numbers(build, shape, strides); base.count() != 1) linear = a.add(linear, build.constant(std::move(base)));
  if (first != axis_at) linear = checked_index(a, given, data[axis], linear, out.rows);
  out.indices = build.reshape(linear, {out.batch, out.count});
  return out;
}

ValueId linear_indices(FoldingBuilder& build, ValueId indices, const Shape& shape) {
  Arithmetic a(build);
  const auto many = static_cast<int64_t>(shape.size());
  const ValueId given = build.cast(indices, DType::i64);
  const int64_t last = static_cast<int64_t>(build.shape(given).size()) - 1;
  if (many == 1) return take_one(build, given, last, 0);
  const ValueId sizes = build.ints(shape);
  const ValueId places = a.mul(from_end(a, given, sizes), build.ints(contiguous_strides(shape)));
  const ValueId outside =
      a.build.add(OpKind::logical_or, {build.add(OpKind::greater_equal, {given, sizes}), a.less(given, build.add(OpKind::neg, {sizes}))});
  const ValueId wrong = a.sum(build.cast(outside, DType::i64), {last});
  const ValueId linear = a.sum(places, {last});
  return a.choose(a.below(wrong, 1), linear, a.number(static_cast<double>(elements(shape)), linear));
}

}  // namespace zeroplan
