#pragma once
// A tensor in host memory that owns its bytes: constants of a graph, reference evaluation, test data. Contiguous.
#include <cstddef>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/tensor_view.h"

namespace zeroplan {

class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(DType dtype, Shape shape);  // zero-filled
  template <typename T>
  static HostTensor of(DType dtype, Shape shape, const std::vector<T>& values);  // values are converted

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * dtype_bytes(dtype_); }
  // Copies share their bytes; the mutable accessors detach first.
  const std::byte* data() const { return storage_ ? storage_->data() : nullptr; }
  std::byte* mutable_data();
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data());
  }
  template <typename T>
  T* mutable_as() {
    return reinterpret_cast<T*>(mutable_data());
  }
  double get(int64_t index) const;        // element as double, whatever the type
  int64_t get_int(int64_t index) const;   // integer types only; exact
  void set(int64_t index, double value);  // rounds to the type
  void set_int(int64_t index, int64_t value);
  HostTensor cast(DType dtype) const;
  HostTensor reshaped(Shape shape) const;          // same bytes, same count
  std::vector<int64_t> to_ints() const;            // integer types only
  TensorView view();                               // detaches; valid while this tensor lives
  bool operator==(const HostTensor& other) const;  // type, shape and bytes

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  int64_t count_ = 0;
  std::shared_ptr<std::vector<std::byte>> storage_;  // shared: constants are copied between graphs without their bytes
};

template <typename T>
HostTensor HostTensor::of(DType dtype, Shape shape, const std::vector<T>& values) {
  HostTensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.count(); ++i) {
    if (is_floating(dtype))
      t.set(i, static_cast<double>(values.at(i)));
    else
      t.set_int(i, static_cast<int64_t>(values.at(i)));
  }
  return t;
}

}  // namespace zeroplan
