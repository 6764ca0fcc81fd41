#pragma once
// Files that appear under their name when they are complete, and not at all otherwise.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zeroplan {

// Every function throws Error naming the path.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void create();  // the temporary file beside the path; never through a link, and never in place of a folder or a device
  bool created() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  int64_t position() const { return position_; }
  void write(const void* bytes, int64_t count);
  void pad_to(int64_t position);                                // zeros
  void write_at(int64_t at, const void* bytes, int64_t count);  // over what lies before position(), which stays
  void sync();                                                  // to disk
  void commit();                                                // to disk, then renamed
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* advice = "") const;  // by errno
  void sync_folder() const;
  std::string path_, temporary_;
  int fd_ = -1;
  int64_t position_ = 0;
};

// Throws Error where the file system of `path` has less space than that.
void require_space(const std::string& path, int64_t bytes);

// The whole file at once. Asks for the space first.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace zeroplan
