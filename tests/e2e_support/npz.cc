#include "tests/e2e_support/npz.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

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

Shape header_shape(const std::string& header) {
  const size_t open = header.find('(', header.find("'shape'")), close = header.find(')', open);
  std::istringstream list(header.substr(open + 1, close - open - 1));
  Shape shape;
  for (std::string item; std::getline(list, item, ',');)
    if (item.find_first_of("0123456789") != std::string::npos) shape.push_back(std::stoll(item));
  return shape;
}

HostTensor parse_npy(const std::string& bytes) {
  const int length_bytes = bytes.at(6) == 1 ? 2 : 4;
  const size_t header_bytes = little(bytes, 8, length_bytes), start = 8 + length_bytes + header_bytes;
  const std::string header = bytes.substr(8 + length_bytes, header_bytes);
  const DType dtype = header.find("<f8") != std::string::npos   ? DType::f64
                      : header.find("<f4") != std::string::npos ? DType::f32
                                                                : DType::i64;
  HostTensor tensor(dtype, header_shape(header));
  check(bytes.size() == start + tensor.bytes(), "npy size");
  std::memcpy(tensor.mutable_data(), bytes.data() + start, tensor.bytes());
  return tensor;
}

}  // namespace

HostTensor read_npy(const std::string& path) { return parse_npy(slurp(path)); }

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
    arrays[name.substr(0, name.rfind(".npy"))] = parse_npy(bytes.substr(start, size));
    at = start + size;
  }
  return arrays;
}

void write_npy(const std::string& path, const HostTensor& tensor) {
  const char* type = tensor.dtype() == DType::f32 ? "<f4" : tensor.dtype() == DType::f64 ? "<f8" : "<i8";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, fmt::join(tensor.shape(), ", "));
  if (tensor.shape().empty()) header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (), }}", type);
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10 + 0, ' ');
  header.back() = '\n';
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  const uint16_t length = static_cast<uint16_t>(header.size());
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  file.close();
  if (!file) throw Error("cannot write " + path);
}

}  // namespace zeroplan
