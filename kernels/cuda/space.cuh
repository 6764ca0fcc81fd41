#pragma once
// A broadcast, strided index space shared by several operands, with axes merged where memory allows; passed to kernels by value.
#include "base/tensor_view.h"
#include "kernels/cuda/divider.cuh"

namespace zeroplan::kernels_cuda {

template <int kOperands>
struct Space {
  int rank = 1;
  int64_t dims[kMaxRank] = {1};
  int64_t strides[kOperands][kMaxRank] = {};  // elements; 0 along broadcast axes
  int64_t count = 1;                          // elements of the space
  Divider dividers[kMaxRank] = {};            // by dims, where count < 2^31

  // Offsets of element i of the space, in row-major order, for the first `operands` of them.
  ZP_DEVICE void offsets(int64_t i, int operands, int64_t* out) const {
    for (int o = 0; o < operands; ++o) out[o] = 0;
    for (int d = rank - 1; d > 0; --d) {
      const int64_t rest = count < INT64_C(1) << 31 ? dividers[d].quotient(static_cast<uint32_t>(i)) : i / dims[d];
      const int64_t at = i - rest * dims[d];
      for (int o = 0; o < operands; ++o) out[o] += at * strides[o][d];
      i = rest;
    }
    for (int o = 0; o < operands; ++o) out[o] += i * strides[o][0];
  }
  ZP_DEVICE int64_t offset(int64_t i) const {
    int64_t at[1];
    offsets(i, 1, at);
    return at[0];
  }
  // Is the operand's offset the index itself?
  bool dense(int operand) const { return rank == 1 && (strides[operand][0] == 1 || count == 1); }
  int64_t inner() const { return dims[rank - 1]; }
  int64_t inner_stride(int operand) const { return strides[operand][rank - 1]; }
  // After dims or strides were changed by hand.
  void recount() {
    count = 1;
    for (int d = 0; d < rank; ++d) count *= dims[d];
    for (int d = 0; d < rank && count > 0 && count < INT64_C(1) << 31; ++d) dividers[d] = Divider(static_cast<uint32_t>(dims[d]));
  }
};

// The space of `shape`'s dimensions; operands are aligned at the last axis and broadcast where their dimension is 1.
template <int kOperands>
inline Space<kOperands> make_space(const TensorView& shape, const TensorView* const* views, int operands) {
  Space<kOperands> space;
  space.rank = 0;
  for (int d = 0; d < shape.rank; ++d) {
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
  space.recount();
  return space;
}

}  // namespace zeroplan::kernels_cuda
