// The format is NumPy's NEP 1: magic, version, header length, a Python dictionary literal, data.
#include "base/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/counted.h"
#include "base/error.h"

namespace zeroplan {
namespace {

struct TypeRow {
  NpyType type;
  const char* descr;  // as in the file, without byte order
  const char* name;
  int64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {NpyType::f4, "f4", "float32", 4}, {NpyType::f8, "f8", "float64", 8}, {NpyType::i1, "i1", "int8", 1},  {NpyType::i2, "i2", "int16", 2},
    {NpyType::i4, "i4", "int32", 4},   {NpyType::i8, "i8", "int64", 8},   {NpyType::u1, "u1", "uint8", 1}, {NpyType::u2, "u2", "uint16", 2},
    {NpyType::u4, "u4", "uint32", 4},  {NpyType::u8, "u8", "uint64", 8},  {NpyType::b1, "b1", "bool", 1},
};

const TypeRow& row(NpyType type) {
  for (const TypeRow& r : kTypes)
    if (r.type == type) return r;
  throw Error("unknown .npy element type");
}

NpyType parse_type(const std::string& path, std::string_view descr) {
  for (const TypeRow& r : kTypes) {
    if (descr.size() != 3 || descr.substr(1) != r.descr) continue;
    if (descr[0] == '<' || descr[0] == '|' || descr[0] == '=') return r.type;
    throw Error(fmt::format("{}: big-endian data ({}); save it as little-endian with .astype('<{}')", path, r.name, r.descr));
  }
  throw Error(fmt::format("{}: element type '{}' is not supported; save it as float32, float64, an int or uint of 8 to 64 bits, or bool",
                          path, descr));
}

// Text of the value of `key` in the dictionary: up to the comma or bracket that ends it.
std::string_view value_of(const std::string& path, std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at != std::string_view::npos) at = header.find(':', at);
  if (at == std::string_view::npos) throw Error(fmt::format("{}: damaged .npy header, no {}", path, key));
  ++at;
  while (at < header.size() && header[at] == ' ') ++at;
  const bool tuple = at < header.size() && header[at] == '(';
  const size_t end = header.find_first_of(tuple ? ")" : ",}", at);
  if (end == std::string_view::npos) throw Error(fmt::format("{}: damaged .npy header at {}", path, key));
  return header.substr(at, end - at);
}

Shape parse_shape(const std::string& path, std::string_view text) {
  Shape shape;
  if (text.empty() || text[0] != '(') throw Error(fmt::format("{}: damaged .npy header, shape {}", path, text));
  for (size_t i = 1; i < text.size();) {
    const char c = text[i];
    if (c == ' ' || c == ',' || c == 'L') {
      ++i;
      continue;
    }
    if (c < '0' || c > '9') throw Error(fmt::format("{}: damaged .npy header, shape {})", path, text));
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), n);
    if (error != std::errc()) throw Error(fmt::format("{}: the shape {}) in its header is beyond 64 bits", path, text));
    shape.push_back(n);
    i = static_cast<size_t>(end - text.data());
  }
  return shape;
}

// Header text and the offset of the data.
std::pair<std::string_view, int64_t> split_header(const std::string& path, const MappedFile& file) {
  const char* p = file.data();
  if (file.size() < 10 || std::memcmp(p, "\x93NUMPY", 6) != 0)
    throw Error(fmt::format("{} is not a .npy file; save it with numpy.save", path));
  const int version = static_cast<unsigned char>(p[6]);
  if (version < 1 || version > 3) throw Error(fmt::format("{}: .npy version {}; versions 1 to 3 are read", path, version));
  const int width = version == 1 ? 2 : 4;
  if (file.size() < 8 + width) throw Error(fmt::format("{}: the file ends within its header", path));
  int64_t length = 0;
  for (int i = 0; i < width; ++i) length |= static_cast<int64_t>(static_cast<unsigned char>(p[8 + i])) << (8 * i);
  if (length > file.size() - 8 - width) throw Error(fmt::format("{}: the file ends within its header", path));
  return {std::string_view(p + 8 + width, static_cast<size_t>(length)), 8 + width + length};
}

int64_t needed_bytes(const std::string& path, const Shape& shape, NpyType type) {
  try {
    return checked_mul(elements(shape), npy_type_bytes(type));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", path, e.message()));
  }
}

}  // namespace

std::string npy_file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

int64_t npy_type_bytes(NpyType type) { return row(type).bytes; }
const char* npy_type_name(NpyType type) { return row(type).name; }

NpyFile::NpyFile(const std::string& file_path) : path(file_path), mapping(std::make_unique<MappedFile>(file_path)) {
  const auto [header, offset] = split_header(path, *mapping);
  std::string_view descr = value_of(path, header, "'descr'");
  if (descr.size() >= 2 && (descr[0] == '\'' || descr[0] == '"')) descr = descr.substr(1, descr.size() - 2);
  type = parse_type(path, descr);
  if (value_of(path, header, "'fortran_order'").substr(0, 4) == "True")
    throw Error(fmt::format("{}: stored in Fortran order; save it with numpy.ascontiguousarray", path));
  shape = parse_shape(path, value_of(path, header, "'shape'"));
  const int64_t needed = needed_bytes(path, shape, type);
  if (needed > mapping->size() - offset)
    throw Error(
        fmt::format("{}: shape {} needs {}, the file holds {}", path, to_string(shape), counted(needed, "byte"), mapping->size() - offset));
  data = mapping->data() + offset;
}

}  // namespace zeroplan
