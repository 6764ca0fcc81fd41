#pragma once
// A file that appears under its name when it is complete, and not at all otherwise.
#include <cstddef>
#include <cstdint>
#include <string>

namespace zeroplan {

class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void create();  // the temporary file beside the path; never through a link
  bool created() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  int64_t position() const { return position_; }
  void write(const void* bytes, int64_t count);
  void pad_to(int64_t position);  // zeros
  void commit();                  // to disk, then renamed
  const std::string& path() const { return path_; }

 private:
  std::string path_, temporary_;
  int fd_ = -1;
  int64_t position_ = 0;
};

}  // namespace zeroplan
