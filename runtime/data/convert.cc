#include "runtime/data/convert.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/type_name.h"
#include "runtime/data/sample_layout.h"

namespace zeroplan {
namespace {

bool is_float(NpyType t) { return t == NpyType::f4 || t == NpyType::f8; }

template <typename Fn>
void visit(NpyType type, Fn&& fn) {
  switch (type) {
    case NpyType::f4: return fn(float{});
    case NpyType::f8: return fn(double{});
    case NpyType::i1: return fn(int8_t{});
    case NpyType::i2: return fn(int16_t{});
    case NpyType::i4: return fn(int32_t{});
    case NpyType::i8: return fn(int64_t{});
    case NpyType::u1:
    case NpyType::b1: return fn(uint8_t{});
    case NpyType::u2: return fn(uint16_t{});
    case NpyType::u4: return fn(uint32_t{});
    case NpyType::u8: return fn(uint64_t{});
  }
}

// Elements of a file need not be aligned.
template <typename T>
T load(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <typename From, typename To>
To exact(From value, const PlanInput& input, int64_t sample) {
  if constexpr (std::is_same_v<To, bool>) {
    if (value == 0 || value == 1) return value == 1;
  } else if (std::in_range<To>(value)) {
    return static_cast<To>(value);
  }
  throw Error(fmt::format("input {}, sample {}: value {} does not fit {}", input.name, sample, +value, type_name(input.dtype)));
}

template <typename From, typename To>
void convert(const char* from, const PlanInput& input, int64_t sample, int64_t count, To* to) {
  for (int64_t i = 0; i < count; ++i) {
    const From value = load<From>(from + i * sizeof(From));
    if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
      to[i] = static_cast<To>(value);
    } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
      to[i] = exact<From, To>(value, input, sample);
      if (!value_allowed(input, static_cast<int64_t>(to[i]))) throw_out_of_range(input, sample, static_cast<int64_t>(to[i]));
    }
  }
}

}  // namespace

bool convertible(NpyType from, DType to) {
  if (is_float(from) || is_floating(to)) return is_float(from) && is_floating(to);
  if (from == NpyType::b1) return to == DType::boolean;
  return to != DType::boolean || from == NpyType::u1;
}

void convert_run(NpyType from, const void* source, const PlanInput& input, int64_t sample, int64_t count, void* to) {
  const auto* bytes = static_cast<const char*>(source);
  if ((from == NpyType::f4 && input.dtype == DType::f32) || (from == NpyType::f8 && input.dtype == DType::f64)) {
    std::memcpy(to, bytes, static_cast<size_t>(count * npy_type_bytes(from)));
    return;
  }
  visit(from, [&](auto f) {
    visit_dtype(input.dtype, [&](auto t) { convert<decltype(f)>(bytes, input, sample, count, static_cast<decltype(t)*>(to)); });
  });
}

}  // namespace zeroplan
