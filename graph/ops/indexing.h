#pragma once
// Loops over indices for the reference evaluators.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/host_tensor.h"
#include "base/shape.h"

namespace zeroplan {

using Index = std::vector<int64_t>;

// Calls fn(index, number) for every element of `shape` in row-major order.
template <typename Fn>
void for_each_index(const Shape& shape, Fn&& fn) {
  const int64_t count = elements(shape);
  Index index(shape.size(), 0);
  for (int64_t n = 0; n < count; ++n) {
    fn(static_cast<const Index&>(index), n);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

// Row-major number of the element at `index`.
inline int64_t flat_index(const Index& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + index[axis];
  return flat;
}

// The same for an operand that is broadcast to the shape `index` runs over.
inline int64_t broadcast_index(const Index& index, const Shape& shape) {
  int64_t flat = 0;
  const size_t lead = index.size() - shape.size();
  for (size_t axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + (shape[axis] == 1 ? 0 : index[lead + axis]);
  return flat;
}

// Exact integer value of an element; booleans are 0 or 1.
inline int64_t int_at(const HostTensor& tensor, int64_t i) {
  return tensor.dtype() == DType::boolean ? (tensor.get(i) != 0) : tensor.get_int(i);
}

inline void set_any_int(HostTensor& tensor, int64_t i, int64_t value) {
  if (tensor.dtype() == DType::boolean)
    tensor.set(i, value != 0);
  else
    tensor.set_int(i, value);
}

// Copies one element, whatever its type.
inline void copy_element(const HostTensor& from, int64_t i, HostTensor& to, int64_t k) {
  const int64_t size = dtype_bytes(to.dtype());
  std::memcpy(to.mutable_data() + k * size, from.data() + i * size, size);
}

}  // namespace zeroplan
