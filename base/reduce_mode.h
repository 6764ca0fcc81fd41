#pragma once
// How communicators add up what ranks contribute.
#include <cstdint>
#include <optional>
#include <string_view>

namespace zeroplan {

// ordered: in the order of the ranks, the same bits at any number of them. fast: in the order that the library chooses.
enum class ReduceMode : uint8_t { ordered, fast };

// The option's and the plan's word.
inline std::string_view reduce_mode_name(ReduceMode mode) { return mode == ReduceMode::fast ? "fast" : "ordered"; }
inline std::optional<ReduceMode> parse_reduce_mode(std::string_view name) {
  for (const ReduceMode mode : {ReduceMode::ordered, ReduceMode::fast})
    if (reduce_mode_name(mode) == name) return mode;
  return std::nullopt;
}

}  // namespace zeroplan
