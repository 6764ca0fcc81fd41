// Elementwise operators of the integer types, computed in 64 bits.
#include "kernels/cpu/block_ops.h"
#include "kernels/failures.h"
#include "kernels/scalar/integers.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

template <typename Op>
void integer_block(const int64_t* a, const int64_t* b, const int64_t* c, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Op::apply(a[i], b ? b[i] : 0, c ? c[i] : 0);
}

}  // namespace

template <>
BlockFn<int64_t> block_function<int64_t>(OpKind op, int64_t) {
  switch (op) {
    case OpKind::cast: return integer_block<IntIdentity>;
    case OpKind::neg: return integer_block<IntNeg>;
    case OpKind::abs: return integer_block<IntAbs>;
    case OpKind::sign: return integer_block<IntSign>;
    case OpKind::add: return integer_block<IntAdd>;
    case OpKind::sub: return integer_block<IntSub>;
    case OpKind::mul: return integer_block<IntMul>;
    case OpKind::div: return integer_block<IntDiv>;
    case OpKind::pow: return integer_block<IntPow>;
    case OpKind::modulo: return integer_block<IntModulo>;
    case OpKind::remainder: return integer_block<IntRemainder>;
    case OpKind::shift_left: return integer_block<IntShiftLeft>;
    case OpKind::shift_right: return integer_block<IntShiftRight>;
    case OpKind::bit_and: return integer_block<IntAnd>;
    case OpKind::bit_or: return integer_block<IntOr>;
    case OpKind::bit_xor: return integer_block<IntXor>;
    case OpKind::maximum: return integer_block<IntMaximum>;
    case OpKind::minimum: return integer_block<IntMinimum>;
    case OpKind::equal: return integer_block<IntEqual>;
    case OpKind::less: return integer_block<IntLess>;
    case OpKind::greater: return integer_block<IntGreater>;
    case OpKind::less_equal: return integer_block<IntLessEqual>;
    case OpKind::greater_equal: return integer_block<IntGreaterEqual>;
    case OpKind::where: return integer_block<IntWhere>;
    default: break;
  }
  not_for_integers(op);
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
