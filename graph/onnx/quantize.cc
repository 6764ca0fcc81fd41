#include "graph/onnx/quantize.h"

#include <limits>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "graph/ops/op_def.h"

namespace zeroplan {
namespace {

Term per_place(Term numbers, Shape shape, int64_t axis, const char* what) {
  if (numbers.rank() != 1 || axis >= static_cast<int64_t>(shape.size()) || numbers.shape()[0] != shape[axis])
    throw Error(fmt::format("its {} of shape {} does not have one number per place of axis {} of {}", what, to_string(numbers.shape()),
                            axis, to_string(shape)));
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  return numbers.reshape(along);
}

Term per_block(Term numbers, Shape shape, int64_t axis, int64_t block, const char* what) {
  Shape blocks = shape;
  if (axis < static_cast<int64_t>(shape.size())) blocks[axis] = ceil_div(shape[axis], block);
  if (numbers.shape() != blocks)
    throw Error(fmt::format("its {} of shape {} does not have one number per block of {} places of axis {} of {}", what,
                            to_string(numbers.shape()), block, axis, to_string(shape)));
  Shape apart = blocks;
  apart.insert(apart.begin() + axis + 1, 1);
  Term spaced = numbers.reshape(apart);
  apart[axis + 1] = block;
  blocks[axis] = checked_mul(blocks[axis], block);
  return part(spaced.broadcast(apart).reshape(blocks), axis, 0, shape[axis]);
}

}  // namespace

bool is_quantised(DType dtype) { return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::u16 || dtype == DType::i16; }

Term spread(Term numbers, Shape shape, int64_t axis, int64_t block, const char* what) {
  if (block > 0) return per_block(numbers, shape, axis, block, what);
  if (block < 0) throw Error(fmt::format("its block size of {} is negative", block));
  if (numbers.rank() <= 1 && elements(numbers.shape()) == 1) return numbers.reshape({});
  return per_place(numbers, shape, axis, what);
}

Term rounded(Term ratio, const Term* zero, DType dtype) {
  double low = 0, high = 0;
  visit_dtype(dtype, [&](auto type) {
    using Limits = std::numeric_limits<decltype(type)>;
    low = static_cast<double>(Limits::lowest()), high = static_cast<double>(Limits::max());
  });
  const Term whole = apply(OpKind::round, ratio, {{Attr::straight_through, int64_t{1}}});
  const Term moved = zero ? whole + *zero : whole;
  return where(moved < low, low, where(moved > high, high, moved));
}

Term as_integers(Term whole, DType dtype) {
  return apply(OpKind::cast, whole, {{Attr::dtype, dtype_value(dtype)}, {Attr::straight_through, int64_t{1}}});
}

Term detached(Term x) { return apply(OpKind::cast, x, {{Attr::dtype, dtype_value(x.dtype())}, {Attr::straight_through, int64_t{0}}}); }

Term whole_numbers(Term integers, DType dtype) {
  FoldingBuilder& build = integers.build();
  return {build, build.rounded().origin(build, integers.id(), dtype)};
}

}  // namespace zeroplan
