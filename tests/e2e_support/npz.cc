#include "tests/e2e_support/npz.h"

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/npy.h"

namespace zeroplan {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error("cannot read " + path);
  return text.str();
}

uint32_t little(const std::string& bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes.at(at + i))) << (8 * i);
  return value;
}

}  // namespace

// Local file headers of the zip format (APPNOTE 4.3.7), stored entries only.
std::map<std::string, HostTensor> read_npz(const std::string& path) {
  const std::string bytes = slurp(path);
  std::map<std::string, HostTensor> arrays;
  for (size_t at = 0; at + 30 < bytes.size() && little(bytes, at, 4) == 0x04034b50;) {
    const size_t name_bytes = little(bytes, at + 26, 2), extra = little(bytes, at + 28, 2);
    const std::string name = bytes.substr(at + 30, name_bytes);
    const size_t start = at + 30 + name_bytes + extra;
    size_t size = little(bytes, at + 18, 4);
    if (size == 0xffffffffu) size = little(bytes, at + 30 + name_bytes + 4, 4);  // zip64 extra field
    arrays[name.substr(0, name.rfind(".npy"))] = parse_npy(path + ": " + name, std::string_view(bytes).substr(start, size)).tensor();
    at = start + size;
  }
  return arrays;
}

}  // namespace zeroplan
