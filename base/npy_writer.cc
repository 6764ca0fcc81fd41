#include "base/npy_writer.h"

#include <fmt/format.h>

#include "base/output_file.h"

namespace zeroplan {
namespace {

const char* descriptor(DType dtype) {
  switch (dtype) {
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::u8: return "|u1";
    case DType::boolean: return "|b1";
    case DType::i8: return "|i1";
    case DType::i16: return "<i2";
    case DType::u16: return "<u2";
    case DType::u32: return "<u4";
    case DType::u64: return "<u8";
  }
  unhandled_dtype(dtype);
}

// The format's description: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string header(const HostTensor& values) {
  constexpr size_t kPrefix = 10, kAlignment = 64;
  std::string shape;
  for (const int64_t dim : values.shape()) shape += fmt::format("{}, ", dim);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor(values.dtype()), shape);
  text.append(kAlignment - (kPrefix + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  const std::string prefix = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  return prefix + text;
}

}  // namespace

void write_npy(const std::string& path, const HostTensor& values) {
  std::string bytes = header(values);
  bytes.append(reinterpret_cast<const char*>(values.data()), static_cast<size_t>(values.bytes()));
  write_file(path, bytes);
}

}  // namespace zeroplan
