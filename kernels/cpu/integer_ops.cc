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
    case OpKind::cast: return integer_block<T, IntIdentity>;
    case OpKind::neg: return integer_block<T, IntNeg>;
    case OpKind::abs: return integer_block<T, IntAbs>;
    case OpKind::sign: return integer_block<T, IntSign>;
    case OpKind::add: return integer_block<T, IntAdd>;
    case OpKind::sub: return integer_block<T, IntSub>;
    case OpKind::mul: return integer_block<T, IntMul>;
    case OpKind::div: return integer_block<T, IntDiv>;
    case OpKind::pow: return integer_block<T, IntPow>;
    case OpKind::modulo: return integer_block<T, IntModulo>;
    case OpKind::remainder: return integer_block<T, IntRemainder>;
    case OpKind::shift_left: return integer_block<T, IntShiftLeft>;
    case OpKind::shift_right: return integer_block<T, IntShiftRight>;
    case OpKind::bit_and: return integer_block<T, IntAnd>;
    case OpKind::bit_or: return integer_block<T, IntOr>;
    case OpKind::bit_xor: return integer_block<T, IntXor>;
    case OpKind::maximum: return integer_block<T, IntMaximum>;
    case OpKind::minimum: return integer_block<T, IntMinimum>;
    case OpKind::equal: return integer_block<T, IntEqual>;
    case OpKind::less: return integer_block<T, IntLess>;
    case OpKind::greater: return integer_block<T, IntGreater>;
    case OpKind::less_equal: return integer_block<T, IntLessEqual>;
    case OpKind::greater_equal: return integer_block<T, IntGreaterEqual>;
    case OpKind::where: return integer_block<T, IntWhere>;
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
