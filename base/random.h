#pragma once
// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#include <cstdint>

namespace zeroplan {

class SplitMix64 {
 public:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t next() { return mix(state_ += kStep); }
  // The mixing function alone: a bijection, for random access by counter.
  static constexpr uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace zeroplan
