#pragma once
// Quantised tensors: whole numbers of an integer type, with a scale and a zero point. In training they are fake-quantised, with a
// straight-through gradient: 1 where the number lies within the range of the type, ends included, and 0 outside of it.
#include "graph/onnx/terms.h"

namespace zeroplan {

bool is_quantised(DType dtype);  // 8 and 16 bits

// A scale or a zero point, spread to broadcast against a tensor of `shape`: one number, one per place of `axis`, or with a `block` above 0
// one per block of places. `what` names it in messages.
Term spread(Term numbers, Shape shape, int64_t axis, int64_t block, const char* what);

// round(ratio) + zero, half to even and held within the range of `dtype`: whole numbers in floating point. No zero: 0.
Term rounded(Term ratio, const Term* zero, DType dtype);
// Whole numbers within the range of `dtype` as that type. Readers get at what was cast by whole_numbers.
Term as_integers(Term whole, DType dtype);
// The same numbers, through which no gradient passes.
Term detached(Term x);
// Integers as floating-point numbers. Where as_integers made them, perhaps moved since: what it cast, so that gradients pass.
Term whole_numbers(Term integers, DType dtype);

}  // namespace zeroplan
