#pragma once
// .npy: read in versions 1 to 3, C order, little-endian; written in version 1.
#include <memory>
#include <string>
#include <string_view>

#include "base/host_tensor.h"
#include "base/mapped_file.h"

namespace zeroplan {

// Element types as files store them.
enum class NpyType : uint8_t { f4, f8, i1, i2, i4, i8, u1, u2, u4, u8, b1 };

// Of the file that holds the value `name` in a folder of such files: NAME.npy, with '_' for each '/' of the name.
std::string npy_file_name(std::string name);

int64_t npy_type_bytes(NpyType type);
const char* npy_type_name(NpyType type);

struct NpyArray {
  NpyType type{};
  Shape shape;
  const char* data = nullptr;  // first element, in the bytes that were parsed

  HostTensor tensor() const;  // a copy, in the type of that name
};

// Throws Error naming `name`, what is wrong and how to save it instead.
NpyArray parse_npy(const std::string& name, std::string_view bytes);

// Mapped into memory.
struct NpyFile : NpyArray {
  explicit NpyFile(const std::string& path);

  std::string path;
  std::unique_ptr<MappedFile> mapping;
};

// The file appears whole or not at all; throws Error naming it.
void write_npy(const std::string& path, const HostTensor& values);

}  // namespace zeroplan
