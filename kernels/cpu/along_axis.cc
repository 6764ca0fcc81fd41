// cumsum, arg_max, top_k: along one axis of a contiguous operand.
#include "kernels/cpu/along_axis.h"

#include <algorithm>
#include <type_traits>

#include "graph/ops/workspace.h"
#include "kernels/cpu/kernels.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

// x, y [outer, size, inner]. Sums of floating-point numbers move on in double.
template <typename T>
void sum_along(const AlongAxis& a, const T* x, T* y, bool exclusive, bool reverse, int threads) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  for_column_pieces(a, threads, [&](int64_t o, int64_t first, int64_t columns) {
    Sum sums[kAxisColumns] = {};
    for (int64_t i = 0; i < a.size; ++i) {
      const int64_t at = (o * a.size + (reverse ? a.size - 1 - i : i)) * a.inner + first;
      for (int64_t c = 0; c < columns; ++c) {
        const Sum before = sums[c];
        sums[c] += static_cast<Sum>(x[at + c]);
        y[at + c] = static_cast<T>(exclusive ? before : sums[c]);
      }
    }
  });
}

// A nan is above all numbers.
template <typename T>
inline bool above(T a, T b) {
  return a > b || (a != a && b == b);
}

// x [outer, size, inner], y [outer, inner].
template <typename T>
void largest_along(const AlongAxis& a, const T* x, int64_t* y, bool select_last, int threads) {
  for_column_pieces(a, threads, [&](int64_t o, int64_t first, int64_t columns) {
    const T* from = x + o * a.size * a.inner + first;
    int64_t* to = y + o * a.inner + first;
    T best[kAxisColumns];
    for (int64_t c = 0; c < columns; ++c) best[c] = from[c], to[c] = 0;
    for (int64_t i = 1; i < a.size; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        const T value = from[i * a.inner + c];
        if (select_last ? above(best[c], value) : !above(value, best[c])) continue;
        best[c] = value;
        to[c] = i;
      }
    }
  });
}

// x [outer, size, inner], values and indices [outer, k, inner]; `order` has room for `size` numbers.
template <typename T>
void pick_one(const AlongAxis& a, const T* x, T* values, int64_t* indices, int64_t k, bool largest, int64_t* order) {
  for (int64_t i = 0; i < a.size; ++i) order[i] = i;
  std::partial_sort(order, order + k, order + a.size, [&](int64_t p, int64_t q) {
    const T u = x[p * a.inner], v = x[q * a.inner];
    if (above(u, v)) return largest;
    if (above(v, u)) return !largest;
    return p < q;
  });
  for (int64_t i = 0; i < k; ++i) {
    values[i * a.inner] = x[order[i] * a.inner];
    indices[i * a.inner] = order[i];
  }
}

bool flag(const KernelArgs& args, Attr key, int64_t otherwise) { return args.attributes->get_int(key, otherwise) != 0; }

}  // namespace

void cumsum_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const AlongAxis a(x, args.attributes->get_int(Attr::axis));
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    sum_along(a, static_cast<const T*>(x.data), static_cast<T*>(y.data), flag(args, Attr::exclusive, 0), flag(args, Attr::reverse, 0),
              args.threads);
  };
  switch (x.dtype) {
    case DType::f32: return run(float{});
    case DType::f64: return run(double{});
    case DType::i32: return run(int32_t{});
    case DType::i64: return run(int64_t{});
    default: unhandled_dtype(x.dtype);
  }
}

void arg_max_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const AlongAxis a(x, args.attributes->get_int(Attr::axis));
  visit_dtype(x.dtype, [&](auto zero) {
    largest_along(a, static_cast<const decltype(zero)*>(x.data), static_cast<int64_t*>(y.data), flag(args, Attr::select_last, 0),
                  args.threads);
  });
}

void top_k_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &values = args.outputs[0], &indices = args.outputs[1];
  const AlongAxis a(x, args.attributes->get_int(Attr::axis));
  const int64_t k = args.attributes->get_int(Attr::k), order_bytes = top_k_thread_bytes(a.size);
  const bool largest = flag(args, Attr::largest, 1);
  if (k == 0) return;
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for_workers(args.threads, a.outer * a.inner, [&](int worker, int64_t item) {
      const int64_t o = item / a.inner, c = item % a.inner, to = o * k * a.inner + c;
      pick_one(a, static_cast<const T*>(x.data) + o * a.size * a.inner + c, static_cast<T*>(values.data) + to,
               static_cast<int64_t*>(indices.data) + to, k, largest,
               reinterpret_cast<int64_t*>(static_cast<std::byte*>(args.workspace) + worker * order_bytes));
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
