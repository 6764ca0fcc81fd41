// Check mode: which bytes do steps really touch?
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "runtime/exec/rank_state.h"
#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

constexpr uint64_t kPattern = 0xC5A5'5A3C'96E1'7B2Du;  // no common number in any type
constexpr uint64_t kCanary = 0xB7B7'B7B7'B7B7'B7B7u;

// A block of memory as the host sees it, which many are moved by: each takes its way to the device and back.
using Block = std::vector<std::byte>;
constexpr int64_t kBlockBytes = 1 << 20;

Block block_of(uint64_t pattern, int64_t bytes) {
  Block block(static_cast<size_t>(bytes));
  for (size_t at = 0; at < block.size(); at += sizeof pattern)
    std::memcpy(block.data() + at, &pattern, std::min(sizeof pattern, block.size() - at));
  return block;
}

void fill_pattern(Rank& rank, const ArenaMemory& arena, int64_t begin, int64_t end) {
  const Block block = block_of(kPattern, std::clamp<int64_t>(end - begin, 0, kBlockBytes));
  for (int64_t at = begin; at < end; at += kBlockBytes) rank.write(arena.data() + at, block.data(), std::min(kBlockBytes, end - at));
}

}  // namespace

void fill_canaries(Rank& rank) {
  const Block block = block_of(kCanary, kCanaryBytes);
  for (ArenaMemory& arena : rank.arenas) rank.write(arena.data() + arena.bytes, block.data(), kCanaryBytes);
}

void check_canaries(Rank& rank) {
  const Block whole = block_of(kCanary, kCanaryBytes);
  for (int a = 0; a < kArenas; ++a) {
    const ArenaMemory& arena = rank.arenas[a];
    Block found = whole;  // where the stream has failed nothing is read, and that failure counts
    rank.read(arena.data() + arena.bytes, found.data(), kCanaryBytes);
    const auto bad = std::mismatch(found.begin(), found.end(), whole.begin()).first;
    if (bad != found.end())
      throw Error(fmt::format("a write past the end of the {} arena of {} bytes, at {} bytes behind it", arena_name(static_cast<Arena>(a)),
                              arena.bytes, bad - found.begin()));
  }
}

void fill_transient(Rank& rank, Program next) {
  const ArenaMemory& arena = rank.arenas[static_cast<int>(Arena::transient)];
  int64_t begin = 0;
  if (next == Program::update)
    for (const auto& [from, to] : rank.carried) {
      fill_pattern(rank, arena, begin, from);
      begin = to;
    }
  fill_pattern(rank, arena, begin, arena.bytes);
}

// Blocks from the end; arenas and the starts of carried tensors are aligned, so every block begins with the pattern's first byte.
int64_t touched_transient(Rank& rank) {
  const ArenaMemory& arena = rank.arenas[static_cast<int>(Arena::transient)];
  const Block whole = block_of(kPattern, std::min(kBlockBytes, arena.bytes));
  Block found(whole.size());
  for (int64_t first = (arena.bytes - 1) / kBlockBytes * kBlockBytes; first >= 0 && arena.bytes > 0; first -= kBlockBytes) {
    const int64_t n = std::min(kBlockBytes, arena.bytes - first);
    rank.read(arena.data() + first, found.data(), n);
    for (int64_t at = n - 1; at >= 0; --at)
      if (found[at] != whole[at]) return std::min(arena.bytes, round_up(first + at + 1, kArenaAlignment));
  }
  return 0;
}

}  // namespace zeroplan
