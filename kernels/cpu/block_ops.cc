#include "kernels/cpu/block_ops.h"

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/scalar/elementwise.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename T, typename Op>
void unary_block(const T* a, const T*, const T*, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a))); });
}
template <typename T, typename Op>
void binary_block(const T* a, const T* b, const T*, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a), at.load(b))); });
}
template <typename T, typename Op>
void ternary_block(const T* a, const T* b, const T* c, T* y, int64_t n) {
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA { at.store(y, Op::apply(at.load(a), at.load(b), at.load(c))); });
}

// Common exponents need no call of pow; x^2 and x^3 are exact products up to rounding.
template <typename T>
void pow_block(const T* a, const T* b, const T* c, T* y, int64_t n) {
  const T p = b[0];
  bool same = p == 2 || p == 3 || p == T(0.5) || p == 1 || p == -1;
  for (int64_t i = 1; i < n && same; ++i) same = b[i] == p;
  if (!same) return binary_block<T, Pow>(a, b, c, y, n);
  for_lanes<T>(n, [=](auto at) ZP_LAMBDA {
    const Vec<T> x = at.load(a);
    if (p == 2)
      at.store(y, x * x);
    else if (p == 3)
      at.store(y, x * x * x);
    else if (p == 1)
      at.store(y, x);
    else if (p == -1)
      at.store(y, Vec<T>(T(1)) / x);
    else
      at.store(y, sqrt(x + Vec<T>(T(0))));  // + 0: pow(-0, ½) is +0
  });
}

template <typename T, typename Op, int kArity>
constexpr BlockFn<T> block_of() {
  if constexpr (kArity == 1) return unary_block<T, Op>;
  if constexpr (kArity == 2) return binary_block<T, Op>;
  if constexpr (kArity == 3) return ternary_block<T, Op>;
}

template <typename T>
BlockFn<T> tanh_form(OpKind op) {
  switch (op) {
#define ZP_TANH_FUNCTOR(arity, name, functor) \
  case OpKind::name: {                        \
    return block_of<T, functor, arity>();     \
  }
#include "kernels/scalar/functors.def"
    default: return nullptr;
  }
}

}  // namespace

template <typename T>
BlockFn<T> block_function(OpKind op, int64_t approximate) {
  if (op == OpKind::pow) return pow_block<T>;
  const BlockFn<T> tanh = approximate != 0 ? tanh_form<T>(op) : nullptr;
  if (tanh != nullptr) return tanh;
  switch (op) {
#define ZP_FUNCTOR(arity, name, functor)  \
  case OpKind::name: {                    \
    return block_of<T, functor, arity>(); \
  }
#include "kernels/scalar/functors.def"
    default: check(false, "not an elementwise operator");
  }
  return nullptr;
}
template BlockFn<float> block_function<float>(OpKind, int64_t);
template BlockFn<double> block_function<double>(OpKind, int64_t);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
