// Reductions; axes are an input, or an attribute where the operator's older form came through.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "graph/onnx/terms.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a node reduces. No axes: nothing, and the elementwise part of the operator alone is left.
struct Reduction {
  std::vector<int64_t> axes;  // sorted
  bool keepdims = true;
};

Reduction reduction_of(const DecodeContext& c) {
  Reduction r{c.has(1) ? c.ints(1, "axes") : c.attr_ints("axes"), c.attr_int("keepdims", 1) != 0};
  if (r.axes.empty() && c.attr_int("noop_with_empty_axes", 0) == 0)
    for (int64_t i = 0; i < c.rank(0); ++i) r.axes.push_back(i);
  for (int64_t& axis : r.axes) axis = normalize_axis(axis, c.rank(0));
  std::sort(r.axes.begin(), r.axes.end());
  r.axes.erase(std::unique(r.axes.begin(), r.axes.end()), r.axes.end());
  return r;
}

Shape reduced_shape(const Reduction& r, const Shape& from) {
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool gone = std::binary_search(r.axes.begin(), r.axes.end(), static_cast<int64_t>(i));
    if (!gone || r.keepdims) shape.push_back(gone ? 1 : from[i]);
  }
  return shape;
}

Term reduced(const Reduction& r, OpKind op, Term x) { return r.axes.empty() ? x : reduce(op, x, r.axes, r.keepdims); }
Term total(const Reduction& r, Term x) { return reduced(r, OpKind::reduce_sum, wide(x)).cast(x.dtype()); }

// Integers, which the operator's formula leaves, take the way over double.
template <typename Formula>
void in_floating_point(DecodeContext& c, Formula formula) {
  const Term x = term(c, 0);
  result(c, is_floating(x.dtype()) ? formula(x) : formula(x.cast(DType::f64)).cast(x.dtype()));
}

void reduce_sum(DecodeContext& c) { result(c, total(reduction_of(c), term(c, 0))); }

// Of integers the quotient of the whole sum, towards zero.
void reduce_mean(DecodeContext& c) {
  const Reduction r = reduction_of(c);
  const Term x = term(c, 0);
  if (is_floating(x.dtype())) return result(c, reduced(r, OpKind::reduce_mean, x));
  const int64_t results = elements(reduced_shape(r, x.shape())), count = results == 0 ? 1 : elements(x.shape()) / results;
  if (count == 0) throw Error("it takes the mean of nothing");
  const DType sums = x.dtype() == DType::u64 ? DType::u64 : DType::i64;
  const Term divisor = Term(c.build, c.build.reshape(c.build.ints({count}), {})).cast(sums);
  result(c, (total(r, x.cast(DType::i64)).cast(sums) / divisor).cast(x.dtype()));
}

// What nothing at all has as its largest element, or its smallest: the other end of the type.
Term end_of(const Term& x, bool low) {
  HostTensor end(x.dtype(), {});
  visit_dtype(x.dtype(), [&](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    if constexpr (Limits::has_infinity)
      end.set(0, low ? -Limits::infinity() : Limits::infinity());
    else
      end.set_int(0, static_cast<int64_t>(low ? Limits::min() : Limits::max()));
  });
  return {x.build(), x.build().constant(std::move(end))};
}

void choose(DecodeContext& c, bool largest) {
  const Reduction r = reduction_of(c);
  const Term x = term(c, 0);
  const DType given = x.dtype();
  if (elements(x.shape()) == 0) return result(c, end_of(x, largest).broadcast(reduced_shape(r, x.shape())));
  const auto turned = [&](Term value) { return largest ? value : opposite(value); };
  result(c, unordered(turned(reduced(r, OpKind::reduce_max, turned(ordered(x)))), given));
}

void reduce_max(DecodeContext& c) { choose(c, true); }
void reduce_min(DecodeContext& c) { choose(c, false); }

void reduce_prod(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, reduced(reduction_of(c), OpKind::reduce_prod, wide(x)).cast(x.dtype()));
}

void reduce_sum_square(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, total(reduction_of(c), x * x));
}

void reduce_l1(DecodeContext& c) {
  const Term x = term(c, 0);
  result(c, total(reduction_of(c), abs(x)));
}

// The root has no slope at zero: none is passed there.
void reduce_l2(DecodeContext& c) {
  const Reduction r = reduction_of(c);
  in_floating_point(c, [&](Term x) {
    const Term sum = total(r, x * x), none = sum == 0;
    return where(none, 0, sqrt(where(none, 1, sum)));
  });
}

void reduce_log_sum(DecodeContext& c) {
  const Reduction r = reduction_of(c);
  in_floating_point(c, [&](Term x) { return log(total(r, x)); });
}

void reduce_log_sum_exp(DecodeContext& c) {
  const Reduction r = reduction_of(c);
  in_floating_point(c, [&](Term x) {
    if (r.axes.empty()) return x;
    if (elements(x.shape()) == 0) return end_of(x, true).broadcast(reduced_shape(r, x.shape()));
    const Shifted down = shift_down(x, r.axes);
    return log(total(r, exp(down.x))) + down.shift.reshape(reduced_shape(r, x.shape()));
  });
}

void global_average_pool(DecodeContext& c) {
  const Term x = term(c, 0);
  if (x.rank() < 3) throw Error("its input needs rank 3 or more");
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  result(c, reduce(OpKind::reduce_mean, x, axes, true));
}

}  // namespace

void add_reduce_decoders(DecoderTable& t) {
  t["ReduceSum"] = reduce_sum;
  t["ReduceMean"] = reduce_mean;
  t["ReduceMax"] = reduce_max;
  t["ReduceMin"] = reduce_min;
  t["ReduceProd"] = reduce_prod;
  t["ReduceSumSquare"] = reduce_sum_square;
  t["ReduceL2"] = reduce_l2;
  t["ReduceL1"] = reduce_l1;
  t["ReduceLogSum"] = reduce_log_sum;
  t["GlobalAveragePool"] = global_average_pool;
  t["ReduceLogSumExp"] = reduce_log_sum_exp;
}

}  // namespace zeroplan
