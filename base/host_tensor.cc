#include "base/host_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"

namespace zeroplan {
namespace {

// A bool is read through its byte: anything but 0 is true.
template <typename T>
T load(const std::byte* data, int64_t index) {
  if constexpr (std::is_same_v<T, bool>)
    return data[index] != std::byte{0};
  else
    return reinterpret_cast<const T*>(data)[index];
}

template <typename T>
constexpr bool kHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// C++ conversion, except that floating point outside the range of an integer saturates and NaN gives 0. Integers become 16-bit
// floating point by way of float.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (kHalf<From>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (kHalf<To> && std::is_integral_v<From>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From{};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(Limits::min())) return Limits::min();
    if (value >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(value);
  } else
    return static_cast<To>(value);
}

template <typename From>
void store(std::byte* data, DType dtype, int64_t index, From value) {
  visit_stored(dtype, [&](auto zero) {
    using T = decltype(zero);
    reinterpret_cast<T*>(data)[index] = convert<T>(value);
  });
}

void check_index(int64_t index, int64_t count) { check(index >= 0 && index < count, "element index outside the tensor"); }

}  // namespace

HostTensor::HostTensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)), count_(elements(shape_)) {
  storage_ = std::make_shared<std::vector<std::byte>>(checked_mul(count_, dtype_bytes(dtype)));
}

std::byte* HostTensor::mutable_data() {
  if (!storage_) return nullptr;
  if (storage_.use_count() > 1) storage_ = std::make_shared<std::vector<std::byte>>(*storage_);
  return storage_->data();
}

double HostTensor::get(int64_t index) const {
  check_index(index, count_);
  return visit_stored(dtype_, [&](auto zero) { return convert<double>(load<decltype(zero)>(data(), index)); });
}

int64_t HostTensor::get_int(int64_t index) const {
  check(!is_floating(dtype_), "get_int of a floating-point tensor");
  check_index(index, count_);
  return visit_stored(dtype_, [&](auto zero) { return convert<int64_t>(load<decltype(zero)>(data(), index)); });
}

void HostTensor::set(int64_t index, double value) {
  check_index(index, count_);
  store(mutable_data(), dtype_, index, value);
}

void HostTensor::set_int(int64_t index, int64_t value) {
  check_index(index, count_);
  store(mutable_data(), dtype_, index, value);
}

HostTensor HostTensor::cast(DType dtype) const {
  if (dtype == dtype_) return *this;
  HostTensor out(dtype, shape_);
  if (!storage_) return out;
  std::byte* to = out.mutable_data();
  visit_stored(dtype_, [&](auto zero) {
    for (int64_t i = 0; i < count_; ++i) store(to, dtype, i, load<decltype(zero)>(data(), i));
  });
  return out;
}

HostTensor HostTensor::reshaped(Shape shape) const {
  if (elements(shape) != count_)
    throw Error(
        fmt::format("a tensor of shape {} cannot be reshaped to {}: the number of elements differs", to_string(shape_), to_string(shape)));
  HostTensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

std::vector<int64_t> HostTensor::to_ints() const {
  std::vector<int64_t> values(count_);
  for (int64_t i = 0; i < count_; ++i) values[i] = get_int(i);
  return values;
}

TensorView HostTensor::view() { return make_view(mutable_data(), dtype_, shape_); }

bool HostTensor::operator==(const HostTensor& other) const {
  if (dtype_ != other.dtype_ || shape_ != other.shape_ || count_ != other.count_) return false;
  return data() == other.data() || count_ == 0 || std::memcmp(data(), other.data(), bytes()) == 0;
}

}  // namespace zeroplan
