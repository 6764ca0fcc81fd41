#pragma once
// Reads little-endian, C-ordered NPY files (version 1) of f4, f8, i4, i8.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>

#include "base/host_tensor.h"

namespace zeroplan {

inline HostTensor read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 10) throw std::runtime_error("no npy file: " + path);
  const size_t header = static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
  const std::string text = bytes.substr(10, header);
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("'descr': '<(..)'"))) throw std::runtime_error("npy type: " + text);
  const std::string type = match[1];
  const DType dtype = type == "f4" ? DType::f32 : type == "f8" ? DType::f64 : type == "i4" ? DType::i32 : DType::i64;
  Shape shape;
  std::regex_search(text, match, std::regex("'shape': \\(([^)]*)\\)"));
  const std::string dims = match[1];
  const std::regex digits("[0-9]+");
  for (std::sregex_iterator it(dims.begin(), dims.end(), digits), end; it != end; ++it) shape.push_back(std::stoll(it->str()));
  HostTensor out(dtype, shape);
  std::memcpy(out.mutable_data(), bytes.data() + 10 + header, out.bytes());
  return out;
}

// Rows first … first + count - 1 of the first axis.
inline HostTensor rows_of(const HostTensor& x, int64_t first, int64_t count) {
  Shape shape = x.shape();
  const int64_t row = x.bytes() / shape[0];
  shape[0] = count;
  HostTensor out(x.dtype(), shape);
  std::memcpy(out.mutable_data(), x.data() + first * row, count * row);
  return out;
}

}  // namespace zeroplan
