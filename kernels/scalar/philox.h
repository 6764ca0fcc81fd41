#pragma once
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. Integers alone: the same on every
// machine; constexpr, so that every device compiles them.
#include <cstdint>

#include "base/random.h"

namespace zeroplan {

struct PhiloxKey {
  uint32_t low = 0, high = 0;
};

struct PhiloxBlock {
  uint32_t word[4];
};

constexpr PhiloxBlock philox(PhiloxBlock x, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53u} * x.word[0], b = uint64_t{0xcd9e8d57u} * x.word[2];
    x = {{static_cast<uint32_t>(b >> 32) ^ x.word[1] ^ key.low, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ x.word[3] ^ key.high, static_cast<uint32_t>(a)}};
    key.low += 0x9e3779b9u;
    key.high += 0xbb67ae85u;
  }
  return x;
}

// The numbers of one node in one micro-batch of one step: block b is a function of these five alone.
class PhiloxStream {
 public:
  constexpr PhiloxStream(uint64_t seed, int64_t node, int64_t step, int64_t micro_batch)
      : step_(static_cast<uint32_t>(step)), micro_batch_(static_cast<uint32_t>(micro_batch)) {
    const uint64_t key = SplitMix64::mix(SplitMix64::mix(seed + SplitMix64::kStep) ^ static_cast<uint64_t>(node));
    key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  }

  constexpr PhiloxBlock block(int64_t b) const {
    return philox({{static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32), micro_batch_, step_}}, key_);
  }

 private:
  PhiloxKey key_;
  uint32_t step_, micro_batch_;
};

}  // namespace zeroplan
