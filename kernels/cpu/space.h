#pragma once
// A broadcast, strided index space shared by several operands, with axes merged where memory allows.
#include "base/tensor_view.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

inline constexpr int kMaxSpaceOperands = 34;

struct Space {
  int rank = 0;  // at least 1
  int operands = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxSpaceOperands][kMaxRank];  // elements; 0 along broadcast axes
  int64_t inner() const { return dims[rank - 1]; }
  int64_t inner_stride(int operand) const { return strides[operand][rank - 1]; }
  int64_t outer() const;
  bool constant(int operand) const;  // all strides 0
};

// The space of `shape`'s dimensions; operands are aligned at the last axis and broadcast where their dimension is 1.
Space make_space(const TensorView& shape, const TensorView* const* views, int count);

// Steps through the outer axes (all but the last) of a space, from any position.
class OuterIndex {
 public:
  OuterIndex(const Space& space, int64_t position);
  void next();
  int64_t offset(int operand) const;

 private:
  const Space& space_;
  int64_t index_[kMaxRank] = {};
};

// Number of elements, and the same tests as TensorView has, compiled here: see the note on inline functions in the build file.
int64_t count_elements(const TensorView& view);

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
