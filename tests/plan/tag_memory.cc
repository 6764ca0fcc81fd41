#include "tests/plan/tag_memory.h"

#include <algorithm>

namespace zeroplan::test {

Tag tag_of(const std::string& text) {
  Tag tag = text.size();
  for (unsigned char c : text) tag = mix(tag, c);
  return tag;
}

TagMemory::TagMemory(const Plan& plan, int rank, Tag seed) : plan_(plan), rank_(rank), fresh_(mix(seed, static_cast<Tag>(rank) + 77)) {
  for (int a = 0; a < kArenas; ++a) {
    bytes_[a].resize(static_cast<size_t>(plan.arena_bytes[a]));
    poison_arena(static_cast<Arena>(a));
  }
}

void TagMemory::poison_arena(Arena arena) {
  for (Tag& tag : bytes_[static_cast<int>(arena)]) tag = ++fresh_ * 0x9E3779B97F4A7C15ull;
}

void TagMemory::poison_arena(Arena arena, const std::vector<int32_t>& kept) {
  const std::vector<Tag> before = bytes_[static_cast<int>(arena)];
  poison_arena(arena);
  for (int32_t tensor : kept)
    each_element(tensor, [&](int64_t address) {
      const int64_t width = dtype_bytes(plan_.tensors[tensor].dtype);
      check_range(arena, address, width);
      std::copy_n(before.begin() + address, width, bytes_[static_cast<int>(arena)].begin() + address);
    });
}

void TagMemory::check_range(Arena arena, int64_t address, int64_t bytes) const {
  if (address < 0 || address + bytes > static_cast<int64_t>(bytes_[static_cast<int>(arena)].size()))
    throw std::out_of_range("bytes outside the arena");
}

Tag TagMemory::load(Arena arena, int64_t address, int64_t width) const {
  check_range(arena, address, width);
  const auto& bytes = bytes_[static_cast<int>(arena)];
  Tag tag = bytes[address];
  for (int64_t b = 1; b < width; ++b)
    if (bytes[address + b] != tag + static_cast<Tag>(b)) return mix(mix(tag, bytes[address + b]), static_cast<Tag>(b));  // not one element
  return tag;
}

void TagMemory::store(Arena arena, int64_t address, int64_t width, Tag tag) {
  check_range(arena, address, width);
  for (int64_t b = 0; b < width; ++b) bytes_[static_cast<int>(arena)][address + b] = tag + static_cast<Tag>(b);
}

template <typename Fn>
void TagMemory::each_element(int32_t tensor, Fn&& fn) const {
  const PlanTensor& t = plan_.tensors[tensor];
  const int64_t width = dtype_bytes(t.dtype), count = elements(t.shape);
  int64_t base = t.offset;
  if (t.per_rank) base += rank_ * plan_.units[t.unit].shard_elements * width;
  if (is_contiguous(t.shape, t.strides)) {
    for (int64_t n = 0; n < count; ++n) fn(base + n * width);
    return;
  }
  std::vector<int64_t> index(t.shape.size(), 0);
  int64_t at = 0;
  for (int64_t n = 0; n < count; ++n) {
    fn(base + at * width);
    for (size_t axis = t.shape.size(); axis-- > 0;) {
      at += t.strides[axis];
      if (++index[axis] < t.shape[axis]) break;
      at -= t.strides[axis] * t.shape[axis];
      index[axis] = 0;
    }
  }
}

std::vector<Tag> TagMemory::read(int32_t tensor) const {
  const PlanTensor& t = plan_.tensors[tensor];
  std::vector<Tag> tags;
  tags.reserve(static_cast<size_t>(elements(t.shape)));
  each_element(tensor, [&](int64_t address) { tags.push_back(load(t.arena, address, dtype_bytes(t.dtype))); });
  return tags;
}

void TagMemory::write(int32_t tensor, const std::vector<Tag>& tags) {
  const PlanTensor& t = plan_.tensors[tensor];
  size_t n = 0;
  each_element(tensor, [&](int64_t address) { store(t.arena, address, dtype_bytes(t.dtype), tags.at(n++)); });
}

void TagMemory::write_part(int32_t tensor, int64_t first, const std::vector<Tag>& tags) {
  const PlanTensor& t = plan_.tensors[tensor];
  const int64_t width = dtype_bytes(t.dtype);
  for (size_t n = 0; n < tags.size(); ++n) store(t.arena, t.offset + (first + static_cast<int64_t>(n)) * width, width, tags[n]);
}

void TagMemory::poison(int32_t tensor) {
  const PlanTensor& t = plan_.tensors[tensor];
  each_element(tensor, [&](int64_t address) { store(t.arena, address, dtype_bytes(t.dtype), ++fresh_ * 0xD6E8FEB86659FD93ull); });
}

}  // namespace zeroplan::test
