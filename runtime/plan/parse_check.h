#pragma once
// Range checks of a stored plan's fields. A Field is a place in the file, printed only when a check fails; private to runtime/plan.
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"
#include "graph/ir/graph.h"

namespace zeroplan {

inline constexpr int64_t kMaxBytes = int64_t{1} << 44;
inline constexpr int64_t kMaxCount = int64_t{1} << 32;
inline constexpr int kMaxRanks = 1 << 20;
inline constexpr int kMaxThreads = 1 << 12;

struct PlanSizes {
  size_t tensors = 0, values = 0, parameters = 0, units = 0;
};

class Field {
 public:
  Field(const Field* parent, const char* name, int index = -1) : parent_(parent), name_(name), index_(index) {}
  // Valid while this field lives.
  Field sub(const char* name, int index = -1) const { return Field(this, name, index); }

  [[noreturn]] void fail(const std::string& what) const;
  int64_t range(int64_t value, int64_t low, int64_t high) const;
  int32_t index(int32_t value, size_t count) const;  // kNone or below count
  int32_t index_not_none(int32_t value, size_t count) const;
  DType dtype(uint32_t value) const { return enumeration<DType>(value, std::size(kDTypes)); }
  double time(double value) const;  // finite, not negative
  template <typename Repeated>
  Shape shape(const Repeated& dims) const {
    Shape shape(dims.begin(), dims.end());
    check_shape(shape);
    return shape;
  }
  template <typename Enum>
  Enum enumeration(uint32_t value, uint32_t count) const {
    range(value, 0, count - 1);
    return static_cast<Enum>(value);
  }
  // Runs fn, naming this field in the Error that it throws.
  template <typename Fn>
  auto guard(Fn&& fn) const {
    try {
      return fn();
    } catch (const Error& e) {
      fail(e.message());
    }
  }

 private:
  void check_shape(const Shape& shape) const;
  std::string path() const;

  const Field* parent_;
  const char* name_;
  int index_;
};

}  // namespace zeroplan
