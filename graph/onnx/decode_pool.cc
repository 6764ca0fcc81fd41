// Pools: of maxima, means and p-norms, over windows or all of space; MaxUnpool; LRN, whose windows slide over channels.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/extent.h"
#include "graph/onnx/decode_powers.h"
#include "graph/onnx/decode_windows.h"
#include "graph/onnx/quantize.h"

namespace zeroplan {
namespace {

SlidingWindows pool_windows(const DecodeContext& c) {
  spatial_axes(c.shape(0));
  return sliding_windows(c, c.shape(0), c.attr_ints("kernel_shape"));
}

Attributes pool_attributes(const SlidingWindows& w, const Shape& x) {
  Attributes attributes = w.attributes(w.covering(x));
  attributes.set(Attr::kernel_shape, w.kernel);
  return attributes;
}

// Row-major indices into [N,C,…] as the node counts them with storage_order 1: the first spatial axis fastest.
Term column_major(Term indices, const Shape& x) {
  const auto whole = [&](int64_t n) {
    HostTensor t(DType::i64, {});
    t.set_int(0, n);
    return Term(indices.build(), indices.build().constant(std::move(t)));
  };
  const int64_t plane = std::accumulate(x.begin() + 2, x.end(), int64_t{1}, std::multiplies<>());
  const Term base = indices / whole(plane) * whole(plane);
  Term rest = indices - base, result = base;
  int64_t behind = plane, before = 1;
  for (size_t axis = 2; axis < x.size(); ++axis) {
    behind /= x[axis];
    const Term at = rest / whole(behind);
    rest = rest - at * whole(behind);
    result = result + at * whole(before);
    before *= x[axis];
  }
  return result;
}

void max_pool(DecodeContext& c) {
  const Shape x = c.shape(0);
  const DType dtype = c.build.dtype(c.in(0));
  // Integers of 8 bits are exact in floating point.
  const Term from = is_floating(dtype) ? term(c, 0) : whole_numbers(term(c, 0), c.precision);
  const std::vector<ValueId> y = c.build.add_multi(OpKind::max_pool, {from.id()}, pool_attributes(pool_windows(c), x));
  const Term largest(c.build, y[0]);
  result(c, is_floating(dtype) ? largest : as_integers(largest, dtype));
  if (c.wants(1)) c.out(1, c.attr_int("storage_order", 0) != 0 ? column_major({c.build, y[1]}, x).id() : y[1]);
}

// Do all windows lie within x, or within x and its padding? The first and the last reach furthest.
bool whole_windows(const SlidingWindows& w, const Shape& x, bool with_pads) {
  for (size_t axis = 0; axis < w.kernel.size(); ++axis) {
    const int64_t begin = with_pads ? -w.pads[axis] : 0, end = x[2 + axis] + (with_pads ? w.pads[w.kernel.size() + axis] : 0);
    const int64_t last = w.begin(axis, w.out[axis] - 1) + w.extent(axis) - 1;
    if (w.begin(axis, 0) < begin || last >= end) return false;
  }
  return true;
}

// Places of each window within x and its padding, [1,1,…], where they are fewer than its size.
Term divided_by_counts(Term sums, const SlidingWindows& w, const Shape& x) {
  for (size_t axis = 0; axis < w.kernel.size(); ++axis) {
    Shape shape(x.size(), 1);
    shape[2 + axis] = w.out[axis];
    HostTensor factors = sums.build().table(sums.dtype(), shape);
    const int64_t end = x[2 + axis] + w.pads[w.kernel.size() + axis];
    for (int64_t o = 0; o < w.out[axis]; ++o) {
      const int64_t room = end - w.begin(axis, o), count = room <= 0 ? 0 : std::min(w.kernel[axis], (room - 1) / w.dilations[axis] + 1);
      factors.set(o, static_cast<double>(w.kernel[axis]) / static_cast<double>(count));
    }
    sums = sums * Term(sums.build(), sums.build().constant(std::move(factors)));
  }
  return sums;
}

void average_pool(DecodeContext& c) {
  const Shape x = c.shape(0);
  const SlidingWindows w = pool_windows(c);
  const bool with_pads = c.attr_int("count_include_pad", 0) != 0, whole = whole_windows(w, x, with_pads);
  Attributes attributes = pool_attributes(w, x);
  attributes.set(Attr::count_include_pad, int64_t{with_pads || whole});
  const Term y = apply(OpKind::average_pool, term(c, 0), attributes);
  // Padding counts, but not what a last window in ceil mode reaches beyond it.
  result(c, with_pads && !whole ? divided_by_counts(y, w, x) : y);
}

void lp_pool(DecodeContext& c) {
  const Shape x = c.shape(0);
  const SlidingWindows w = pool_windows(c);
  const double p = static_cast<double>(c.attr_int("p", 2));
  Attributes attributes = pool_attributes(w, x);
  attributes.set(Attr::count_include_pad, int64_t{1});
  const Term means = apply(OpKind::average_pool, absolute_power(term(c, 0), p), attributes);
  result(c, power_root(means * static_cast<double>(elements(w.kernel)), p));
}

std::vector<int64_t> space(const DecodeContext& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < c.rank(0); ++i) axes.push_back(i);
  if (axes.empty()) throw Error("its input needs rank 3 or more");
  return axes;
}

void global_average_pool(DecodeContext& c) { result(c, reduce(OpKind::reduce_mean, term(c, 0), space(c), true)); }
void global_max_pool(DecodeContext& c) { result(c, reduce(OpKind::reduce_max, term(c, 0), space(c), true)); }

void global_lp_pool(DecodeContext& c) {
  const double p = static_cast<double>(c.attr_int("p", 2));
  result(c, power_root(reduce(OpKind::reduce_sum, absolute_power(term(c, 0), p), space(c), true), p));
}

// Sizes that the pool had before it; an output_shape only adds zeros behind.
Shape unpooled_shape(const DecodeContext& c) {
  Shape shape = c.shape(0);
  const size_t count = spatial_axes(shape);
  const std::vector<int64_t> kernel = window_list(c, "kernel_shape", count, 1, 1), strides = window_list(c, "strides", count, 1, 1),
                             pads = window_list(c, "pads", 2 * count, 0, 0);
  for (size_t i = 0; i < count; ++i) {
    shape[2 + i] = checked_add(checked_mul(shape[2 + i] - 1, strides[i]), kernel[i] - pads[i] - pads[count + i]);
    if (shape[2 + i] < 1) throw Error(fmt::format("its result would have the shape {}", to_string(shape)));
  }
  return shape;
}

// Where windows overlap, an element may be named by several of them, with one value: the mean of those.
void max_unpool(DecodeContext& c) {
  const Shape inferred = unpooled_shape(c);
  extent(inferred);  // throws
  const int64_t count = elements(c.shape(0));
  const Attributes table = {{Attr::axis, int64_t{0}}, {Attr::shape, Shape{elements(inferred)}}};
  const Term x = term(c, 0).reshape({count}), indices = term(c, 1).reshape({count});
  const auto placed = [&](Term values) { return Term(c.build, c.build.add(OpKind::gather_grad, {values.id(), indices.id()}, table)); };
  const Term sums = placed(x), times = placed(x.number(1).broadcast({count}));
  const Term y = (sums / maximum(times, 1)).reshape(inferred);
  const std::vector<int64_t> wanted = c.has(2) ? c.ints(2, "output_shape") : inferred;
  if (wanted == inferred) return result(c, y);
  const size_t rank = inferred.size();
  bool larger = wanted.size() == rank;
  for (size_t i = 0; larger && i < rank; ++i) larger = wanted[i] >= inferred[i];
  if (!larger)
    throw Error(fmt::format("its output_shape {} is smaller than {}, which its input gives", to_string(wanted), to_string(inferred)));
  c.out(0,
        c.build.add(OpKind::slice_grad, {y.id()},
                    {{Attr::shape, wanted}, {Attr::starts, std::vector<int64_t>(rank, 0)}, {Attr::steps, std::vector<int64_t>(rank, 1)}}));
}

// x / (bias + alpha / size · Σ x²)^beta, the sum over the channels around each.
void lrn(DecodeContext& c) {
  const Term x = term(c, 0);
  const Shape shape = x.shape();
  const int64_t size = c.attr_int("size", 0);
  if (shape.size() < 2 || size < 1 || size > kMaxExtent) throw Error("it needs channels and a sound size");
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  const Attributes windows = {{Attr::kernel_shape, Shape{size, 1}},
                              {Attr::strides, Shape{1, 1}},
                              {Attr::dilations, Shape{1, 1}},
                              {Attr::pads, Shape{before, 0, after, 0}},
                              {Attr::count_include_pad, int64_t{1}}};
  const int64_t plane = elements(shape) / std::max<int64_t>(1, shape[0] * shape[1]);
  const Term means = apply(OpKind::average_pool, (x * x).reshape({shape[0], 1, shape[1], plane}), windows).reshape(shape);
  result(c, x / pow(means * c.attr_float("alpha", 1e-4) + c.attr_float("bias", 1), c.attr_float("beta", 0.75)));
}

}  // namespace

void add_pool_decoders(DecoderTable& t) {
  t["MaxPool"] = max_pool;
  t["AveragePool"] = average_pool;
  t["LpPool"] = lp_pool;
  t["GlobalAveragePool"] = global_average_pool;
  t["GlobalMaxPool"] = global_max_pool;
  t["GlobalLpPool"] = global_lp_pool;
  t["MaxUnpool"] = {max_unpool, gradient_to({0})};
  t["LRN"] = lrn;
}

}  // namespace zeroplan
