#pragma once
// .npy files mapped into memory: version 1 to 3, C order, little-endian.
#include <memory>
#include <string>

#include "base/shape.h"
#include "runtime/data/data_source.h"

namespace zeroplan {

// Element types as files store them; wider than DType.
enum class NpyType : uint8_t { f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1 };

int64_t npy_type_bytes(NpyType type);
const char* npy_type_name(NpyType type);

// A read-only mapping of a whole file.
class FileMapping {
 public:
  explicit FileMapping(const std::string& path);  // throws Error naming the file
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  const char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  const char* data_ = nullptr;
  int64_t bytes_ = 0;
};

struct NpyFile {
  explicit NpyFile(const std::string& path);  // throws Error naming the file, what is wrong and how to save it instead

  std::string path;
  NpyType type{};
  Shape shape;
  const char* data = nullptr;  // first element
  std::unique_ptr<FileMapping> mapping;
};

}  // namespace zeroplan
