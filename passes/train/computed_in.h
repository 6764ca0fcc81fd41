#pragma once
// What each operator computes in where the model's values have 16 bits (--precision bf16, fp16).
#include "graph/ir/node.h"

namespace zeroplan {

enum class ComputedIn : uint8_t {
  half,    // operands are rounded to 16 bits: its cost is that of its operands' width
  single,  // operands are widened to float32, the result stays so
  either,  // 16 bits, unless an operand is float32
};

constexpr ComputedIn computed_in(OpKind op) {
  switch (op) {
    case OpKind::matmul:
    case OpKind::conv:
    case OpKind::conv_grad_input:
    case OpKind::conv_grad_weight:
    case OpKind::attention: return ComputedIn::half;
    // Moderate operands give results beyond what float16 holds.
    case OpKind::exp:
    case OpKind::pow:
    case OpKind::sinh:
    case OpKind::cosh:
    case OpKind::tan:
    case OpKind::reciprocal:
    // Steep: the rounding of an operand is a multiple of it in the result.
    case OpKind::log:
    case OpKind::asin:
    case OpKind::acos:
    case OpKind::acosh:
    case OpKind::atanh:
    // Whole numbers, of which bfloat16 holds 256 in a row.
    case OpKind::ceil:
    case OpKind::floor:
    case OpKind::round:
    case OpKind::modulo:
    case OpKind::remainder:
    // Results that sum up many elements.
    case OpKind::reduce_sum:
    case OpKind::reduce_mean:
    case OpKind::reduce_prod:
    case OpKind::cumsum:
    // Losses, outputs, and what is summed over ranks.
    case OpKind::cross_entropy:
    case OpKind::record_loss:
    case OpKind::record_output:
    case OpKind::all_reduce: return ComputedIn::single;
    default: return ComputedIn::either;
  }
}

}  // namespace zeroplan
