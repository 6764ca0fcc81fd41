#pragma once
// Random choices of the mutator.
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace zeroplan {

class Choice {
 public:
  explicit Choice(unsigned int seed) : random_(seed) {}
  int below(int count) { return static_cast<int>(random_.next() % static_cast<uint64_t>(count)); }
  template <typename T>
  T& of(std::vector<T>& list) {
    return list[below(static_cast<int>(list.size()))];
  }
  template <typename T>
  const T& of(const std::vector<T>& list) {
    return list[below(static_cast<int>(list.size()))];
  }
  template <typename List>
  void drop(List& list) {
    if (!list.empty()) list.erase(list.begin() + below(list.size()));
  }
  int64_t integer();   // small ones, and those at the ends of ranges
  int64_t size();      // a dimension, mostly a sound one
  double number();     // zero, one, tiny, huge, infinite, not a number
  int element_type();  // TensorProto.DataType

 private:
  SplitMix64 random_;
};

}  // namespace zeroplan
