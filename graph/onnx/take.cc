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

Term from_end(Term indices, Term sizes) { return where(indices < 0, indices + sizes, indices); }

}  // namespace

Term take(Term x, int64_t axis, const std::vector<int64_t>& places) {
  const Shape from = x.shape();
  if (axis < 0 || axis >= x.rank()) throw Error(fmt::format("an operand of shape {} has no axis {}", to_string(from), axis));
  Shape to = from;
  to[axis] = static_cast<int64_t>(places.size());
  const int64_t many = repeats(places, from[axis]);
  if (many == 1) return x;
  if (evenly_spaced(places)) return part(x, axis, places.empty() ? 0 : places[0], to[axis], places.size() < 2 ? 1 : places[1] - places[0]);
  if (many > 1 && from.size() < kMaxRank) {
    Shape apart = from;
    apart.insert(apart.begin() + axis + 1, 1);
    Shape spread = apart;
    spread[axis + 1] = many;
    return x.reshape(apart).broadcast(spread).reshape(to);
  }
  return gather(x, {x.build(), x.build().ints(places)}, axis);
}

ElementPlaces element_places(const Shape& data, Term indices, int64_t axis) {
  const Shape shape = indices.shape();
  if (shape.size() != data.size()) throw Error(fmt::format("indices {} and data {} differ in rank", to_string(shape), to_string(data)));
  const auto axis_at = static_cast<size_t>(axis);
  size_t first = 0;
  while (first < axis_at && shape[first] == data[first]) ++first;
  int64_t batch = 1, rows = 1, count = 1;
  Strides strides = contiguous_strides(data);
  const int64_t stride = strides[axis];
  for (size_t i = 0; i < data.size(); ++i) {
    if (i != axis_at && shape[i] > data[i]) throw Error(fmt::format("indices {} reach beyond data {}", to_string(shape), to_string(data)));
    (i < first ? batch : rows) *= data[i];
    if (i >= first) count *= shape[i];
    if (i < first || i == axis_at) strides[i] = 0;
  }
  const Term given = indices.cast(DType::i64);
  const auto size = static_cast<double>(data[axis]);
  // Rows of one axis and what lies behind it: the kernels count negative numbers from the end themselves.
  Term linear = times(first == axis_at ? given : from_end(given, given.number(size)), static_cast<double>(stride));
  if (HostTensor base = numbers(given.build(), shape, strides); base.count() != 1)
    linear = linear + Term(given.build(), given.build().constant(std::move(base)));
  // An index outside its axis must not name another element: it becomes one that the kernels refuse.
  if (first != axis_at) linear = where(given < size && given >= -size, linear, static_cast<double>(rows));
  return {batch, rows, count, linear.reshape({batch, count})};
}

Term linear_indices(Term indices, const Shape& shape) {
  FoldingBuilder& build = indices.build();
  const Term given = indices.cast(DType::i64);
  const int64_t last = given.rank() - 1;
  if (shape.size() == 1) return item(given, last, 0);
  const Term sizes(build, build.ints(shape)), strides(build, build.ints(contiguous_strides(shape)));
  const Term linear = sum(from_end(given, sizes) * strides, {last});
  const Term wrong = sum((given >= sizes || given < -sizes).cast(DType::i64), {last});
  return where(wrong < 1, linear, static_cast<double>(elements(shape)));
}

}  // namespace zeroplan
