#pragma once
// Kinds of hardware that a plan is made for.
#include <cstdint>
#include <optional>
#include <string_view>

namespace zeroplan {

enum class DeviceKind : uint8_t { cpu, cuda };

// The option's and the plan's word.
inline std::string_view device_kind_name(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }
inline std::optional<DeviceKind> parse_device_kind(std::string_view name) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    if (device_kind_name(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace zeroplan
