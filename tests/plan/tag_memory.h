#pragma once
// Tags of one rank's arenas, addressed like the plan's tensors.
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace zeroplan::test {

using Tag = uint64_t;

inline Tag mix(Tag a, Tag b) {
  Tag x = a * 0x9E3779B97F4A7C15ull ^ (b + 0x7F4A7C15F39CC060ull + (a << 6) + (a >> 2));
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 32);
}
Tag tag_of(const std::string& text);

class TagMemory {
 public:
  TagMemory(const Plan& plan, int rank, Tag seed);

  void poison_arena(Arena arena);
  // The same, but for the bytes of these tensors.
  void poison_arena(Arena arena, const std::vector<int32_t>& kept);
  void poison(int32_t tensor);
  // One tag per element in row-major order. Throws std::out_of_range outside the arena.
  std::vector<Tag> read(int32_t tensor) const;
  void write(int32_t tensor, const std::vector<Tag>& tags);
  // Elements [first, first + tags.size()) of a contiguous tensor.
  void write_part(int32_t tensor, int64_t first, const std::vector<Tag>& tags);

 private:
  template <typename Fn>
  void each_element(int32_t tensor, Fn&& fn) const;  // fn(address)
  void check_range(Arena arena, int64_t address, int64_t bytes) const;
  Tag load(Arena arena, int64_t address, int64_t width) const;
  void store(Arena arena, int64_t address, int64_t width, Tag tag);

  const Plan& plan_;
  int rank_;
  Tag fresh_;  // changes with every poisoning
  std::array<std::vector<Tag>, kArenas> bytes_;
};

}  // namespace zeroplan::test
