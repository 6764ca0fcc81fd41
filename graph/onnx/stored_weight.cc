#include "graph/onnx/stored_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/type_name.h"

namespace zeroplan {
namespace {

constexpr int64_t kBlock = 1 << 16;  // elements

[[noreturn]] void too_short(const StoredRun& run, int64_t first, int64_t count) {
  throw Error(fmt::format("weight '{}': elements {} … {} lie outside its {} bytes", run.initializer, first, first + count, run.bytes));
}

// Numbers of protobuf one after another; those of int32_data are sign-extended, and half types take their lowest 16 bits.
class Varints {
 public:
  Varints(WeightFiles& files, const StoredRun& run, int64_t bytes) : files_(files), run_(run), read_(bytes) {}

  int64_t position() const { return read_ - static_cast<int64_t>(block_.size() - at_); }  // bytes of the run before the next number

  uint64_t next(int64_t index) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(next_byte(index));
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw Error(fmt::format("weight '{}': element {} is longer than ten bytes; save the model again", run_.initializer, index));
  }

 private:
  std::byte next_byte(int64_t index) {
    if (at_ == block_.size()) {
      const int64_t left = run_.bytes - read_;
      if (left <= 0) too_short(run_, index, 1);
      block_.resize(std::min(left, kBlock));
      files_.read(run_.file, run_.offset + read_, static_cast<int64_t>(block_.size()), block_.data());
      read_ += static_cast<int64_t>(block_.size());
      at_ = 0;
    }
    return block_[at_++];
  }

  WeightFiles& files_;
  const StoredRun& run_;
  std::vector<std::byte> block_;
  size_t at_ = 0;
  int64_t read_;
};

// From the last block on whose begin an earlier call came by.
void read_varints(WeightFiles& files, const StoredRun& run, int64_t first, int64_t count, std::byte* out) {
  const int64_t size = stored_bytes(run.type);
  const WeightFiles::Mark from = files.last_mark(run.file, run.offset, first);
  Varints numbers(files, run, from.bytes);
  for (int64_t i = from.element; i < first + count; ++i) {
    if (i % kBlock == 0) files.keep_mark(run.file, run.offset, {i, numbers.position()});
    const uint64_t value = numbers.next(i);
    if (i >= first) std::memcpy(out + (i - first) * size, &value, size);  // little-endian: the lowest bytes
  }
}

std::vector<double> read_all(WeightFiles& files, const StoredRun& run, int64_t count) {
  std::vector<std::byte> stored(count * stored_bytes(run.type));
  read_stored(files, run, 0, count, stored.data());
  std::vector<double> numbers(count);
  decode_stored(run.type, stored.data(), count, numbers.data());
  return numbers;
}

// Between what is stored and the values of a run of `T`.
template <typename T>
class Form {
 public:
  Form(WeightFiles& files, const WeightSource& source) : type_(source.type) {
    if (!source.quantization) return;
    const Quantization& q = *source.quantization;
    extent_ = q.extent;
    inner_ = q.inner;
    block_ = q.block;
    scale_ = read_all(files, q.scale, q.count);
    // As graph constants in double precision (tensor_data.cc).
    if (std::is_same_v<T, double> && q.count == 1 && q.scale.type == StoredType::f32) scale_[0] = meant_root(scale_[0]);
    zero_point_ = q.zero_point.bytes > 0 ? read_all(files, q.zero_point, q.count) : std::vector<double>(q.count, 0);
  }

  T value(double stored, int64_t element) const {
    if (scale_.empty()) return static_cast<T>(stored);
    const size_t k = number_of(element);
    return static_cast<T>(stored - zero_point_[k]) * static_cast<T>(scale_[k]);
  }

  // False: the stored type has no number near it.
  bool encode(T value, int64_t element, std::byte* to) const {
    if (scale_.empty()) return encode_stored(type_, static_cast<double>(value), to);
    const size_t k = number_of(element);
    const T steps = std::nearbyint(value / static_cast<T>(scale_[k]));
    return encode_stored(type_, static_cast<double>(steps) + zero_point_[k], to);
  }

 private:
  size_t number_of(int64_t element) const {
    if (scale_.size() == 1) return 0;
    const int64_t k = element / inner_ % extent_;
    if (block_ == 0) return k;
    return (element / inner_ / extent_ * ceil_div(extent_, block_) + k / block_) * inner_ + element % inner_;
  }

  StoredType type_;
  int64_t extent_ = 1, inner_ = 1, block_ = 0;
  std::vector<double> scale_, zero_point_;  // empty: not quantised
};

bool is_stored_as(const WeightSource& source, DType dtype) {
  const bool same = (source.type == StoredType::f32 && dtype == DType::f32) || (source.type == StoredType::f64 && dtype == DType::f64);
  return same && !source.varints && !source.quantization;
}

template <typename T>
void read_as(WeightFiles& files, const WeightSource& source, int64_t first, int64_t count, T* out) {
  const int64_t size = stored_bytes(source.type);
  const Form<T> form(files, source);
  std::vector<std::byte> stored(std::min(count, kBlock) * size);
  std::vector<double> numbers(std::min(count, kBlock));
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t n = std::min(kBlock, count - done);
    read_stored(files, source, first + done, n, stored.data());
    decode_stored(source.type, stored.data(), n, numbers.data());
    for (int64_t i = 0; i < n; ++i) out[done + i] = form.value(numbers[i], first + done + i);
  }
}

[[noreturn]] void out_of_range(const Parameter& p, double value, int64_t element) {
  const auto name = stored_long_name(p.source.type);
  throw Error(
      fmt::format("parameter '{}' cannot be exported: element {} is {}, which {} cannot hold; train with a smaller --lr, or start "
                  "from a model that is stored in {}",
                  p.name, element, value, name, p.source.type == StoredType::f16 ? "bfloat16 or float32" : "float32"));
}

template <typename T>
void write_as(WeightFiles& files, const Parameter& p, const T* values, std::vector<std::byte>& out) {
  const WeightSource& source = p.source;
  const int64_t size = stored_bytes(source.type), total = elements(p.shape);
  const Form<T> form(files, source);
  std::vector<double> numbers(std::min(total, kBlock));
  for (int64_t done = 0; done < total; done += kBlock) {
    const int64_t n = std::min(kBlock, total - done);
    read_stored(files, source, done, n, out.data() + done * size);
    decode_stored(source.type, out.data() + done * size, n, numbers.data());
    for (int64_t i = 0; i < n; ++i) {
      const T value = values[done + i], before = form.value(numbers[i], done + i);
      if (std::memcmp(&value, &before, sizeof value) == 0) continue;
      if (!form.encode(value, done + i, out.data() + (done + i) * size)) out_of_range(p, value, done + i);
    }
  }
}

}  // namespace

void read_stored(WeightFiles& files, const StoredRun& run, int64_t first, int64_t count, void* out) {
  const int64_t size = stored_bytes(run.type);
  if (first < 0 || count < 0) too_short(run, first, count);
  if (run.varints) return read_varints(files, run, first, count, static_cast<std::byte*>(out));
  if (count > run.bytes / size - first) too_short(run, first, count);
  files.read(run.file, run.offset + first * size, count * size, out);
}

void read_weight(WeightFiles& files, const WeightSource& source, int64_t first, int64_t count, DType dtype, void* out) {
  if (is_stored_as(source, dtype)) return read_stored(files, source, first, count, out);
  if (dtype == DType::f32) return read_as(files, source, first, count, static_cast<float*>(out));
  if (dtype == DType::f64) return read_as(files, source, first, count, static_cast<double*>(out));
  throw Error(fmt::format("weight '{}' cannot be read as {}", source.initializer, type_name(dtype)));
}

std::vector<std::byte> to_stored(WeightFiles& files, const Parameter& p, std::span<const std::byte> values) {
  const int64_t total = elements(p.shape);
  const DType dtype = wide_dtype(p.dtype);
  if (static_cast<int64_t>(values.size()) != total * dtype_bytes(dtype))
    throw Error(
        fmt::format("parameter '{}' was given {} bytes for the export but needs {}", p.name, values.size(), total * dtype_bytes(dtype)));
  if (is_stored_as(p.source, dtype)) return {values.begin(), values.end()};
  std::vector<std::byte> out(total * stored_bytes(p.source.type));
  if (dtype == DType::f32)
    write_as(files, p, reinterpret_cast<const float*>(values.data()), out);
  else
    write_as(files, p, reinterpret_cast<const double*>(values.data()), out);
  return out;
}

}  // namespace zeroplan
