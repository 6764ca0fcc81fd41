// Elementwise operators of the integer types, computed in 64 bits.
#include "kernels/cpu/block_ops.h"
#include "kernels/failures.h"
#include "kernels/scalar/integers.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename T, typename Op>
void integer_block(const T* a, const T* b, const T* c, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Op::apply(a[i], b ? b[i] : T(0), c ? c[i] : T(0));
}

template <typename T>
BlockFn<T> integer_function(OpKind op) {
  switch (op) {
#define ZP_INTEGER_FUNCTOR(name, functor) \
  case OpKind::name: {                    \
    return integer_block<T, functor>;     \
  }
#include "kernels/scalar/functors.def"
    default: break;
  }
  not_for_integers(op);
}

}  // namespace

template <>
BlockFn<int64_t> block_function<int64_t>(OpKind op, int64_t) {
  return integer_function<int64_t>(op);
}
template <>
BlockFn<uint64_t> block_function<uint64_t>(OpKind op, int64_t) {
  return integer_function<uint64_t>(op);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
