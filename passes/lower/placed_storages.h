#pragma once
// Storages placed so far, by offset, in chunks: an insertion moves few bytes, and a search skips chunks whose lifetimes are elsewhere.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace zeroplan {

class PlacedStorages {
 public:
  // Calls fn(begin, end) for the storages that live together with steps first … last, by offset, until it returns false.
  template <typename Fn>
  void overlapping(int first, int last, Fn fn) const {
    for (const auto& chunk : chunks_) {
      if (chunk->earliest > last || chunk->latest < first) continue;
      for (int block = 0; block < chunk->count; block += kBlock) {
        int any = 0;  // branch-free, so that compilers use vector instructions
        for (int i = block; i < block + kBlock; ++i)
          any |= static_cast<int>(chunk->last[i] >= first) & static_cast<int>(chunk->first[i] <= last);
        if (any == 0) continue;
        for (int i = block; i < block + kBlock; ++i)
          if (chunk->last[i] >= first && chunk->first[i] <= last && !fn(chunk->begin[i], chunk->end[i])) return;
      }
    }
  }

  void insert(int first, int last, int64_t begin, int64_t end) {
    const auto behind = [](int64_t offset, const std::unique_ptr<Chunk>& chunk) { return offset < chunk->begin[0]; };
    auto at = std::upper_bound(chunks_.begin(), chunks_.end(), begin, behind);
    if (at != chunks_.begin()) --at;
    if (at == chunks_.end()) at = chunks_.insert(at, std::make_unique<Chunk>());
    if ((*at)->count == kChunk) {
      auto right = (*at)->split();
      const bool goes_right = begin >= right->begin[0];
      at = chunks_.insert(at + 1, std::move(right));
      if (!goes_right) --at;
    }
    (*at)->insert(first, last, begin, end);
  }

 private:
  static constexpr int kBlock = 16, kChunk = 256;

  struct Chunk {
    std::array<int32_t, kChunk> first, last;
    std::array<int64_t, kChunk> begin, end;
    int count = 0, earliest = INT32_MAX, latest = -1;

    Chunk() {  // unused entries live at no time
      first.fill(INT32_MAX);
      last.fill(-1);
    }
    void insert(int from, int to, int64_t low, int64_t high) {
      const auto at = std::upper_bound(begin.begin(), begin.begin() + count, low) - begin.begin();
      const auto open = [&](auto& values, auto value) {
        std::move_backward(values.begin() + at, values.begin() + count, values.begin() + count + 1);
        values[at] = value;
      };
      open(first, from);
      open(last, to);
      open(begin, low);
      open(end, high);
      ++count;
      earliest = std::min(earliest, from);
      latest = std::max(latest, to);
    }
    std::unique_ptr<Chunk> split() {
      auto right = std::make_unique<Chunk>();
      Chunk left;
      for (int i = 0; i < count; ++i) (i < count / 2 ? left : *right).insert(first[i], last[i], begin[i], end[i]);
      *this = left;
      return right;
    }
  };

  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace zeroplan
