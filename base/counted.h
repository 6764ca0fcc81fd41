#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zeroplan {

// "1 sample", "2 samples", "3 micro-batches".
std::string counted(int64_t count, std::string_view noun);

}  // namespace zeroplan
