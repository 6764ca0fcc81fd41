#pragma once
// A whole file in memory, read-only, as a private mapping.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zeroplan {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // throws Error naming the path
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const char* data() const { return reinterpret_cast<const char*>(data_); }
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace zeroplan
