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
#include "base/output_file.h"

namespace zeroplan {
namespace {

struct TypeRow {
  NpyType type;
  DType dtype;
  const char* descr;  // as in the file, without byte order
  const char* name;
};
constexpr TypeRow kTypes[] = {
    {NpyType::f4, DType::f32, "f4", "float32"}, {NpyType::f8, DType::f64, "f8", "float64"},  {NpyType::i1, DType::i8, "i1", "int8"},
    {NpyType::i2, DType::i16, "i2", "int16"},   {NpyType::i4, DType::i32, "i4", "int32"},    {NpyType::i8, DType::i64, "i8", "int64"},
    {NpyType::u1, DType::u8, "u1", "uint8"},    {NpyType::u2, DType::u16, "u2", "uint16"},   {NpyType::u4, DType::u32, "u4", "uint32"},
    {NpyType::u8, DType::u64, "u8", "uint64"},  {NpyType::b1, DType::boolean, "b1", "bool"},
};

template <typename Fn>
const TypeRow& row(const Fn& fits) {
  for (const TypeRow& r : kTypes)
    if (fits(r)) return r;
  throw Error("unknown .npy element type");
}

const TypeRow& row(NpyType type) {
  return row([&](const TypeRow& r) { return r.type == type; });
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
std::pair<std::string_view, size_t> split_header(const std::string& path, std::string_view bytes) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY")
    throw Error(fmt::format("{} is not a .npy file; save it with numpy.save", path));
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(bytes[at])); };
  if (byte(6) < 1 || byte(6) > 3) throw Error(fmt::format("{}: .npy version {}; versions 1 to 3 are read", path, byte(6)));
  const size_t width = byte(6) == 1 ? 2 : 4;
  if (bytes.size() < 8 + width) throw Error(fmt::format("{}: the file ends within its header", path));
  size_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= byte(8 + i) << (8 * i);
  if (length > bytes.size() - 8 - width) throw Error(fmt::format("{}: the file ends within its header", path));
  return {bytes.substr(8 + width, length), 8 + width + length};
}

int64_t needed_bytes(const std::string& path, const Shape& shape, NpyType type) {
  try {
    return checked_mul(elements(shape), npy_type_bytes(type));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", path, e.message()));
  }
}

// The format's description: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string header_of(const HostTensor& values) {
  constexpr size_t kPrefix = 10, kAlignment = 64;
  const TypeRow& type = row([&](const TypeRow& r) { return r.dtype == values.dtype(); });
  std::string shape;
  for (const int64_t dim : values.shape()) shape += fmt::format("{}, ", dim);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", dtype_bytes(type.dtype) == 1 ? '|' : '<',
                                 type.descr, shape);
  text.append(kAlignment - (kPrefix + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  const std::string prefix = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return prefix + text;
}

}  // namespace

std::string npy_file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

int64_t npy_type_bytes(NpyType type) { return dtype_bytes(row(type).dtype); }
const char* npy_type_name(NpyType type) { return row(type).name; }

NpyArray parse_npy(const std::string& name, std::string_view bytes) {
  const auto [header, offset] = split_header(name, bytes);
  std::string_view descr = value_of(name, header, "'descr'");
  if (descr.size() >= 2 && (descr[0] == '\'' || descr[0] == '"')) descr = descr.substr(1, descr.size() - 2);
  NpyArray array;
  array.type = parse_type(name, descr);
  if (value_of(name, header, "'fortran_order'").substr(0, 4) == "True")
    throw Error(fmt::format("{}: stored in Fortran order; save it with numpy.ascontiguousarray", name));
  array.shape = parse_shape(name, value_of(name, header, "'shape'"));
  const int64_t needed = needed_bytes(name, array.shape, array.type), there = static_cast<int64_t>(bytes.size() - offset);
  if (needed > there)
    throw Error(fmt::format("{}: shape {} needs {}, the file holds {}", name, to_string(array.shape), counted(needed, "byte"), there));
  array.data = bytes.data() + offset;
  return array;
}

HostTensor NpyArray::tensor() const {
  HostTensor values(row(type).dtype, shape);
  std::memcpy(values.mutable_data(), data, static_cast<size_t>(values.bytes()));
  return values;
}

NpyFile::NpyFile(const std::string& file) : path(file), mapping(std::make_unique<MappedFile>(file)) {
  static_cast<NpyArray&>(*this) = parse_npy(path, {mapping->data(), static_cast<size_t>(mapping->size())});
}

void write_npy(const std::string& path, const HostTensor& values) {
  std::string bytes = header_of(values);
  bytes.append(reinterpret_cast<const char*>(values.data()), static_cast<size_t>(values.bytes()));
  write_file(path, bytes);
}

}  // namespace zeroplan
