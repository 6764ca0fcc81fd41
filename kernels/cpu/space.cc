#include "kernels/cpu/space.h"

#include "base/error.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

bool merges(const Space& s, int axis, int64_t dim) {
  for (int o = 0; o < s.operands; ++o) {
    if (s.strides[o][s.rank - 1] != s.strides[o][axis] * dim) return false;
  }
  return true;
}

}  // namespace

int64_t Space::outer() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= dims[i];
  return n;
}

bool Space::constant(int operand) const {
  for (int i = 0; i < rank; ++i) {
    if (strides[operand][i] != 0) return false;
  }
  return true;
}

Space make_space(const TensorView& shape, const TensorView* const* views, int count) {
  check(count <= kMaxSpaceOperands, "too many operands in one index space");
  Space s;
  s.operands = count;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const int64_t dim = shape.dims[axis];
    if (dim == 1) continue;
    // Operand strides along this axis, in the next free column; merged into the last one where every operand allows.
    const int column = s.rank;
    for (int o = 0; o < count; ++o) {
      const TensorView& v = *views[o];
      const int own = axis - (shape.rank - v.rank);
      s.strides[o][column] = own < 0 || v.dims[own] == 1 ? 0 : v.strides[own];
    }
    if (s.rank > 0 && merges(s, column, dim)) {
      s.dims[s.rank - 1] *= dim;
      for (int o = 0; o < count; ++o) s.strides[o][s.rank - 1] = s.strides[o][column];
    } else {
      s.dims[s.rank++] = dim;
    }
  }
  if (s.rank == 0) {
    s.dims[s.rank++] = 1;
    for (int o = 0; o < count; ++o) s.strides[o][0] = 0;
  }
  return s;
}

OuterIndex::OuterIndex(const Space& space, int64_t position) : space_(space) {
  for (int axis = space.rank - 2; axis >= 0; --axis) {
    index_[axis] = position % space.dims[axis];
    position /= space.dims[axis];
  }
}

void OuterIndex::next() {
  for (int axis = space_.rank - 2; axis >= 0; --axis) {
    if (++index_[axis] < space_.dims[axis]) return;
    index_[axis] = 0;
  }
}

int64_t OuterIndex::offset(int operand) const {
  int64_t sum = 0;
  for (int axis = 0; axis + 1 < space_.rank; ++axis) sum += index_[axis] * space_.strides[operand][axis];
  return sum;
}

int64_t count_elements(const TensorView& view) {
  int64_t n = 1;
  for (int i = 0; i < view.rank; ++i) n *= view.dims[i];
  return n;
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
