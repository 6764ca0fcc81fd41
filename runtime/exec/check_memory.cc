// Check mode: which bytes do steps really touch?
#include <fmt/format.h>

#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "runtime/exec/rank_state.h"
#include "runtime/plan/dump.h"

namespace zeroplan {
namespace {

constexpr uint64_t kPattern = 0xC5A5'5A3C'96E1'7B2Du;  // no common number in any type
constexpr unsigned char kCanary = 0xB7;

void fill_pattern(const ArenaMemory& arena, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += 8)
    std::memcpy(arena.data() + at, &kPattern, static_cast<size_t>(std::min<int64_t>(8, end - at)));
}

}  // namespace

void fill_canaries(Rank& rank) {
  for (ArenaMemory& arena : rank.arenas) std::memset(arena.data() + arena.bytes, kCanary, kCanaryBytes);
}

void check_canaries(const Rank& rank) {
  for (int a = 0; a < kArenas; ++a) {
    const ArenaMemory& arena = rank.arenas[a];
    const std::byte* canary = arena.data() + arena.bytes;
    for (int64_t i = 0; i < kCanaryBytes; ++i)
      if (canary[i] != std::byte{kCanary})
        throw Error(fmt::format("a write past the end of the {} arena of {} bytes, at {} bytes behind it",
                                arena_name(static_cast<Arena>(a)), arena.bytes, i));
  }
}

void fill_transient(Rank& rank, Program next) {
  const ArenaMemory& arena = rank.arenas[static_cast<int>(Arena::transient)];
  int64_t begin = 0;
  if (next == Program::update)
    for (const auto& [from, to] : rank.carried) {
      fill_pattern(arena, begin, from);
      begin = to;
    }
  fill_pattern(arena, begin, arena.bytes);
}

int64_t touched_transient(const Rank& rank) {
  const ArenaMemory& arena = rank.arenas[static_cast<int>(Arena::transient)];
  for (int64_t at = (arena.bytes - 1) / 8 * 8; at >= 0 && arena.bytes > 0; at -= 8) {
    const int64_t n = std::min<int64_t>(8, arena.bytes - at);
    if (std::memcmp(arena.data() + at, &kPattern, static_cast<size_t>(n)) != 0)
      return std::min(arena.bytes, round_up(at + n, kArenaAlignment));
  }
  return 0;
}

}  // namespace zeroplan
