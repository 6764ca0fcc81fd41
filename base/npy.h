#pragma once
// .npy files mapped into memory: version 1 to 3, C order, little-endian.
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "base/shape.h"

namespace zeroplan {

// Element types as files store them; wider than DType.
enum class NpyType : uint8_t { f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1 };

// Of the file that holds the value `name` in a folder of such files: NAME.npy, with '_' for each '/' of the name.
std::string npy_file_name(std::string name);

int64_t npy_type_bytes(NpyType type);
const char* npy_type_name(NpyType type);

struct NpyFile {
  explicit NpyFile(const std::string& path);  // throws Error naming the file, what is wrong and how to save it instead

  std::string path;
  NpyType type{};
  Shape shape;
  const char* data = nullptr;  // first element
  std::unique_ptr<MappedFile> mapping;
};

}  // namespace zeroplan
