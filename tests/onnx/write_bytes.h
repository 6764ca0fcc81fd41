#pragma once
#include <fstream>
#include <string>

namespace zeroplan {

inline void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace zeroplan
