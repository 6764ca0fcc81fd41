// reduce_sum, reduce_mean, reduce_max, reduce_prod over any axes of a strided operand.
#include <algorithm>
#include <limits>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/space.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int64_t kSumRun = 4096;    // elements added in lanes before the sum moves on in double
constexpr int64_t kColumnRows = 16;  // rows added in T before the sum moves on in double
constexpr int64_t kFewTerms = 8;     // results of at most that many elements are made side by side,
constexpr int64_t kFewResults = 64;  // this many at a time

// The operand cut into the axes that stay (in the order of y) and those that are reduced.
struct ReduceSpaces {
  Space kept, reduced;
  double divisor = 1;
};

TensorView pick_axes(const TensorView& x, const std::vector<int64_t>& axes, bool wanted) {
  TensorView v = x;
  v.rank = 0;
  for (int i = 0; i < x.rank; ++i) {
    bool listed = false;
    for (int64_t axis : axes) listed = listed || axis == i;
    if (listed != wanted) continue;
    v.dims[v.rank] = x.dims[i];
    v.strides[v.rank++] = x.strides[i];
  }
  return v;
}

ReduceSpaces split_axes(const KernelArgs& args) {
  const std::vector<int64_t>& axes = args.attributes->get_ints(Attr::axes);
  const TensorView kept = pick_axes(args.inputs[0], axes, false), reduced = pick_axes(args.inputs[0], axes, true);
  const TensorView *kept_views[] = {&kept}, *reduced_views[] = {&reduced};
  return {make_space(kept, kept_views, 1), make_space(reduced, reduced_views, 1), static_cast<double>(count_elements(reduced))};
}

struct SumOp {
  static constexpr bool kInLanes = true;
  static ZP_INLINE int64_t join(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
  template <typename V>
  static ZP_INLINE V join(V a, V b) {
    return a + b;
  }
  template <typename T>
  static T start() {
    return T(0);
  }
};
struct MaxOp {
  static constexpr bool kInLanes = true;
  static ZP_INLINE float join(float a, float b) { return a > b || a != a ? a : b; }
  static ZP_INLINE double join(double a, double b) { return a > b || a != a ? a : b; }
  static ZP_INLINE int64_t join(int64_t a, int64_t b) { return a > b ? a : b; }
  template <typename T>
  static ZP_INLINE Vec<T> join(Vec<T> a, Vec<T> b) {
    return select((a > b) | (a != a), a, b);
  }
  template <typename T>
  static T start() {
    if constexpr (std::numeric_limits<T>::has_infinity)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::min();
  }
};

// Factors are joined one by one in double: a run of small ones would vanish in the type of the operand.
struct ProdOp {
  static constexpr bool kInLanes = false;
  static ZP_INLINE double join(double a, double b) { return a * b; }
  static ZP_INLINE int64_t join(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
  template <typename T>
  static T start() {
    return T(1);
  }
};

// max_over, and a nan wins.
template <typename T>
T max_with_nan(const T* x, int64_t n) {
  Vec<T> best(-__builtin_inf());
  for_lanes<T>(n, [&](auto at) ZP_LAMBDA { best = MaxOp::join(best, at.keep(at.load(x), static_cast<T>(-__builtin_inf()))); });
  return fold_lanes(best, [](T p, T q) { return MaxOp::join(p, q); });
}

// One result from x at the reduced positions. Wide: the type that partial results are joined in.
template <typename Op, typename T, typename Wide>
Wide reduce_one(const Space& reduced, const T* x) {
  Wide total = Op::template start<Wide>();
  const int64_t inner = reduced.inner(), stride = reduced.inner_stride(0), outer = reduced.outer();
  OuterIndex index(reduced, 0);
  for (int64_t o = 0; o < outer; ++o, index.next()) {
    const T* run = x + index.offset(0);
    if constexpr (std::is_floating_point_v<T> && Op::kInLanes) {
      if (stride == 1) {
        for (int64_t i = 0; i < inner; i += kSumRun) {
          const int64_t n = std::min(kSumRun, inner - i);
          if constexpr (std::is_same_v<Op, SumOp>)
            total = Op::join(total, static_cast<Wide>(sum_over<T>(n, [&](auto at) ZP_LAMBDA { return at.load(run + i); })));
          else
            total = Op::join(total, static_cast<Wide>(max_with_nan(run + i, n)));
        }
        continue;
      }
    }
    for (int64_t i = 0; i < inner; ++i) total = Op::join(total, static_cast<Wide>(run[i * stride]));
  }
  return total;
}

// The columns [first, first + n) of y, n <= 4 lanes wide, that lie side by side in x: rows are joined in order, in runs of kColumnRows.
template <typename Op, typename T>
void reduce_columns(const Space& reduced, const T* x, T* y, int64_t n, double divisor) {
  const int64_t rows = reduced.inner(), stride = reduced.inner_stride(0), outer = reduced.outer();
  Vec<double> total[4];
  Vec<T> part[4];
  for (auto& t : total) t = Vec<double>(Op::template start<double>());
  const bool whole = n == 4 * kLanes;
  OuterIndex index(reduced, 0);
  for (int64_t o = 0; o < outer; ++o, index.next()) {
    for (int64_t r0 = 0; r0 < rows; r0 += kColumnRows) {
      const int64_t r1 = std::min(rows, r0 + kColumnRows);
      for (auto& p : part) p = Vec<T>(Op::template start<T>());
      for (int64_t r = r0; r < r1; ++r) {
        const T* row = x + index.offset(0) + r * stride;
        for (int k = 0; k < 4; ++k) {
          const int64_t left = std::clamp<int64_t>(n - k * kLanes, 0, kLanes);
          part[k] = Op::join(part[k], whole ? Vec<T>::load(row + k * kLanes) : Vec<T>::load_part(row + k * kLanes, left));
        }
      }
      for (int k = 0; k < 4; ++k) total[k] = Op::join(total[k], to_double(part[k]));
    }
  }
  double result[4 * kLanes];
  for (int k = 0; k < 4; ++k) total[k].store(result + k * kLanes);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(result[i] / divisor);
}

// n <= kFewResults neighbours of y, whose elements lie `stride` apart in x: term by term.
template <typename Op, typename T, typename Wide>
void reduce_few(const Space& reduced, const T* x, int64_t stride, T* y, int64_t n, double divisor) {
  Wide total[kFewResults];
  for (int64_t i = 0; i < n; ++i) total[i] = Op::template start<Wide>();
  OuterIndex index(reduced, 0);
  for (int64_t o = 0; o < reduced.outer(); ++o, index.next()) {
    for (int64_t r = 0; r < reduced.inner(); ++r) {
      const T* from = x + index.offset(0) + r * reduced.inner_stride(0);
      for (int64_t i = 0; i < n; ++i) total[i] = Op::join(total[i], static_cast<Wide>(from[i * stride]));
    }
  }
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(std::is_floating_point_v<T> ? total[i] / static_cast<Wide>(divisor) : total[i]);
}

// y contiguous, in the order of the kept axes.
template <typename Op, typename T, typename Wide>
void reduce(const ReduceSpaces& s, const T* x, T* y, double divisor, int threads) {
  const int64_t inner = s.kept.inner(), stride = s.kept.inner_stride(0);
  constexpr bool kLaned = std::is_floating_point_v<T> && Op::kInLanes;
  const bool columns = kLaned && stride == 1 && inner > 1 && s.reduced.inner_stride(0) != 1;
  const bool few = !columns && inner > 1 && s.divisor <= kFewTerms;
  const int64_t width = columns ? 4 * kLanes : few ? kFewResults : 1, pieces = (inner + width - 1) / width;
  parallel_ranges(threads, s.kept.outer() * pieces, 1, [&](int64_t begin, int64_t end) {
    OuterIndex index(s.kept, begin / pieces);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % pieces * width;
      const T* from = x + index.offset(0) + first * stride;
      T* to = y + item / pieces * inner + first;
      if (few) {
        reduce_few<Op, T, Wide>(s.reduced, from, stride, to, std::min(width, inner - first), divisor);
      } else if constexpr (kLaned) {
        if (columns)
          reduce_columns<Op>(s.reduced, from, to, std::min(width, inner - first), divisor);
        else
          *to = static_cast<T>(reduce_one<Op, T, Wide>(s.reduced, from) / divisor);
      } else {
        *to = static_cast<T>(reduce_one<Op, T, Wide>(s.reduced, from));
      }
      if (item % pieces == pieces - 1) index.next();
    }
  });
}

template <typename Op>
void run_reduce(const KernelArgs& args, bool mean) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (count_elements(y) == 0) return;
  ReduceSpaces s = split_axes(args);
  const double divisor = mean ? s.divisor : 1;
  const auto run = [&](auto element, auto sum, double by) {
    using T = decltype(element);
    reduce<Op, T, decltype(sum)>(s, static_cast<const T*>(x.data), static_cast<T*>(y.data), by, args.threads);
  };
  switch (x.dtype) {
    case DType::f32: return run(float{}, double{}, divisor);
    case DType::f64: return run(double{}, double{}, divisor);
    case DType::i64: return run(int64_t{}, int64_t{}, 1);
    case DType::i32: return run(int32_t{}, int64_t{}, 1);
    default: unhandled_dtype(x.dtype);
  }
}

}  // namespace

void reduce_sum_kernel(const KernelArgs& args) { run_reduce<SumOp>(args, false); }
void reduce_mean_kernel(const KernelArgs& args) { run_reduce<SumOp>(args, true); }
void reduce_max_kernel(const KernelArgs& args) { run_reduce<MaxOp>(args, false); }
void reduce_prod_kernel(const KernelArgs& args) { run_reduce<ProdOp>(args, false); }

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
