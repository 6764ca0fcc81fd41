#include "graph/onnx/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(fmt::format("{}.tmp{}", path_, ::getpid())) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::create() {
  const auto open = [&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644); };
  fd_ = open();
  if (fd_ < 0 && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) fd_ = open();  // left by a process of the same number
  if (fd_ < 0) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

void OutputFile::write(const void* bytes, int64_t count) {
  const auto* at = static_cast<const char*>(bytes);
  position_ += count;
  while (count > 0) {
    const ssize_t done = ::write(fd_, at, static_cast<size_t>(std::min<int64_t>(count, int64_t{1} << 30)));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
    at += done;
    count -= done;
  }
}

void OutputFile::pad_to(int64_t position) {
  const std::vector<char> zeros(4096, 0);
  while (position_ < position) write(zeros.data(), std::min<int64_t>(static_cast<int64_t>(zeros.size()), position - position_));
}

void OutputFile::commit() {
  if (::fsync(fd_) != 0) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
  ::close(fd_);
  fd_ = -1;
}

}  // namespace zeroplan
