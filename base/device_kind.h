#pragma once
// Kinds of hardware that a plan is made for.
#include <cstdint>
#include <string_view>

namespace zeroplan {

enum class DeviceKind : uint8_t { cpu, cuda };

inline std::string_view device_kind_name(DeviceKind kind) { return kind == DeviceKind::cuda ? "cuda" : "cpu"; }

}  // namespace zeroplan
