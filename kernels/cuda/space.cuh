#pragma once
// A broadcast, strided index space shared by several operands, with axes merged where memory allows; passed to kernels by value.
#include "base/tensor_view.h"
#include "kernels/scalar/primitives.h"

namespace zeroplan::kernels_cuda {

template <int kOperands>
struct Space {
  int rank = 1;
  int64_t dims[kMaxRank] = {1};
  int64_t strides[kOperands][kMaxRank] = {};  // elements; 0 along broadcast axes
  int64_t count = 1;                          // elements of the space

  // Offsets of element i of the space, in row-major order, for the first `operands` of them.
  ZP_DEVICE void offsets(int64_t i, int operands, int64_t* out) const {
    for (int o = 0; o < operands; ++o) out[o] = 0;
    for (int d = rank - 1; d > 0; --d) {
      const int64_t rest = i / dims[d], at = i - rest * dims[d];
      for (int o = 0; o < operands; ++o) out[o] += at * strides[o][d];
      i = rest;
    }
    for (int o = 0; o < operands; ++o) out[o] += i * strides[o][0];
  }
  // Is the operand's offset the index itself?
  bool dense(int operand) const { return rank == 1 && (strides[operand][0] == 1 || count == 1); }
};

// The space of `shape`'s dimensions; operands are aligned at the last axis and broadcast where their dimension is 1.
template <int kOperands>
inline Space<kOperands> make_space(const TensorView& shape, const TensorView* const* views, int operands) {
  Space<kOperands> space;
  space.rank = 0;
  for (int d = 0; d < shape.rank; ++d) {
    space.count *= shape.dims[d];
    if (shape.dims[d] == 1) continue;
    int64_t stride[kOperands];
    bool joins = space.rank > 0;
    for (int o = 0; o < operands; ++o) {
      const int axis = d - (shape.rank - views[o]->rank);
      stride[o] = axis < 0 || views[o]->dims[axis] == 1 ? 0 : views[o]->strides[axis];
      joins = joins && space.strides[o][space.rank - 1] == stride[o] * shape.dims[d];
    }
    const int at = joins ? space.rank - 1 : space.rank++;
    space.dims[at] = joins ? space.dims[at] * shape.dims[d] : shape.dims[d];
    for (int o = 0; o < operands; ++o) space.strides[o][at] = stride[o];
  }
  if (space.rank == 0) space.rank = 1;
  return space;
}

}  // namespace zeroplan::kernels_cuda
