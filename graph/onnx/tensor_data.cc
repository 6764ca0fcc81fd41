#include "graph/onnx/tensor_data.h"

#include <cstring>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/extent.h"
#include "graph/onnx/limits.h"

namespace zeroplan {
namespace {

constexpr const char* kTypeNames[] = {
    "undefined",      "float32",    "uint8",          "int8",   "uint16", "int16",      "int32",      "int64",    "string",
    "bool",           "float16",    "float64",        "uint32", "uint64", "complex64",  "complex128", "bfloat16", "float8e4m3fn",
    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",   "float4e2m1", "float8e8m0", "uint2",    "int2"};
constexpr int kTypeBits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4, 8, 2, 2};

template <typename T>
T element(const std::string& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void fill_ints(HostTensor& out, const std::string& bytes) {
  for (int64_t i = 0; i < out.count(); ++i) out.set_int(i, static_cast<int64_t>(element<T>(bytes, i)));
}

void fill_floats(HostTensor& out, StoredType type, const std::string& bytes) {
  std::vector<double> numbers(out.count());
  decode_stored(type, bytes.data(), out.count(), numbers.data());
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, numbers[i]);
}

void convert(int type, const std::string& bytes, HostTensor& out) {
  const int64_t n = out.count();
  if (is_floating_type(type)) return fill_floats(out, *stored_type(type), bytes);
  switch (type) {
    case kOnnxBool:
      for (int64_t i = 0; i < n; ++i) out.set_int(i, bytes[i] != 0);
      return;
    case kOnnxUint8: return fill_ints<uint8_t>(out, bytes);
    case kOnnxInt8: return fill_ints<int8_t>(out, bytes);
    case kOnnxUint16: return fill_ints<uint16_t>(out, bytes);
    case kOnnxInt16: return fill_ints<int16_t>(out, bytes);
    case kOnnxInt32: return fill_ints<int32_t>(out, bytes);
    case kOnnxUint32: return fill_ints<uint32_t>(out, bytes);
    default: return fill_ints<int64_t>(out, bytes);
  }
}

}  // namespace

std::string onnx_type_name(int type) {
  return type >= 0 && type < static_cast<int>(std::size(kTypeNames)) ? kTypeNames[type] : fmt::format("type {}", type);
}

int onnx_type_bits(int type) { return type >= 0 && type < static_cast<int>(std::size(kTypeBits)) ? kTypeBits[type] : 0; }

std::optional<DType> graph_dtype(int type, DType precision) {
  switch (type) {
    case kOnnxFloat:
    case kOnnxDouble:
    case kOnnxFloat16:
    case kOnnxBfloat16: return precision;
    case kOnnxInt64: return DType::i64;
    case kOnnxInt32: return DType::i32;
    case kOnnxInt16: return DType::i16;
    case kOnnxInt8: return DType::i8;
    case kOnnxUint64: return DType::u64;
    case kOnnxUint32: return DType::u32;
    case kOnnxUint16: return DType::u16;
    case kOnnxUint8: return DType::u8;
    case kOnnxBool: return DType::boolean;
    default: return std::nullopt;
  }
}

std::optional<StoredType> stored_type(int type) {
  switch (type) {
    case kOnnxFloat: return StoredType::f32;
    case kOnnxDouble: return StoredType::f64;
    case kOnnxFloat16: return StoredType::f16;
    case kOnnxBfloat16: return StoredType::bf16;
    case kOnnxInt8: return StoredType::i8;
    case kOnnxUint8: return StoredType::u8;
    case kOnnxInt16: return StoredType::i16;
    case kOnnxUint16: return StoredType::u16;
    case kOnnxInt32: return StoredType::i32;
    default: return std::nullopt;
  }
}

bool is_floating_type(int type) {
  const std::optional<StoredType> stored = stored_type(type);
  return stored && is_floating(*stored);
}

OnnxType onnx_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return kOnnxFloat;
    case DType::f64: return kOnnxDouble;
    case DType::i64: return kOnnxInt64;
    case DType::i32: return kOnnxInt32;
    case DType::i16: return kOnnxInt16;
    case DType::i8: return kOnnxInt8;
    case DType::u64: return kOnnxUint64;
    case DType::u32: return kOnnxUint32;
    case DType::u16: return kOnnxUint16;
    case DType::u8: return kOnnxUint8;
    case DType::boolean: return kOnnxBool;
    case DType::f16: return kOnnxFloat16;
    case DType::bf16: return kOnnxBfloat16;
  }
  unhandled_dtype(dtype);
}

int64_t tensor_bytes(const std::string& name, int type, const Shape& shape) {
  if (static_cast<int>(shape.size()) > kMaxRank)
    throw Error(fmt::format("tensor '{}' has rank {}; at most {} is supported", name, shape.size(), kMaxRank));
  int64_t count = 1, bytes = 0;
  bool empty = false, fits = true;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > kMaxDim) throw Error(fmt::format("tensor '{}' has a dimension of {}; the file is damaged", name, dim));
    empty |= dim == 0;
    fits = fits && !__builtin_mul_overflow(count, dim == 0 ? 1 : dim, &count);
  }
  fits = fits && count <= kMaxExtent && !__builtin_mul_overflow(count, int64_t{onnx_type_bits(type)}, &bytes);
  if (!fits)
    throw Error(fmt::format("tensor '{}' of shape {} has more than {} elements, the most that is supported; the file is damaged", name,
                            to_string(shape), kMaxExtent));
  return empty ? 0 : ceil_div(bytes, 8);
}

namespace {

// A single float in a run in double precision.
void restore_meant(const OnnxTensor& tensor, HostTensor& out) {
  if (tensor.type == kOnnxFloat && out.dtype() == DType::f64 && out.count() == 1) out.set(0, meant_root(out.get(0)));
}

std::string contents(const OnnxTensor& tensor, WeightFiles& files) {
  if (!tensor.bytes.empty() || elements(tensor.shape) == 0) return tensor.bytes;
  std::string bytes(static_cast<size_t>(tensor.source.bytes), '\0');
  files.read(tensor.source.file, tensor.source.offset, tensor.source.bytes, bytes.data());
  return bytes;
}

}  // namespace

HostTensor load_tensor(const OnnxTensor& tensor, WeightFiles& files, DType precision) {
  const std::optional<DType> dtype = graph_dtype(tensor.type, precision);
  if (!dtype)
    throw Error(fmt::format("tensor '{}' is {}, which is not supported here; export it as float32, bool or an integer of 8 bits or more",
                            tensor.name, onnx_type_name(tensor.type)));
  HostTensor out(*dtype, tensor.shape);
  convert(tensor.type, contents(tensor, files), out);
  restore_meant(tensor, out);
  return out;
}

// The first of a pair lies in the low bits.
HostTensor load_nibbles(const OnnxTensor& tensor, WeightFiles& files) {
  const bool with_sign = tensor.type == kOnnxInt4;
  HostTensor out(with_sign ? DType::i8 : DType::u8, tensor.shape);
  const std::string bytes = contents(tensor, files);
  for (int64_t i = 0; i < out.count(); ++i) {
    const int nibble = static_cast<uint8_t>(bytes.at(static_cast<size_t>(i / 2))) >> (i % 2 * 4) & 15;
    out.set_int(i, with_sign && nibble > 7 ? nibble - 16 : nibble);
  }
  return out;
}

}  // namespace zeroplan
