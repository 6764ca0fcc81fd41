#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    throw Error(
        fmt::format("cannot open '{}': {}{}", path, std::strerror(errno), errno == ENOENT ? "; check the name and the folder" : ""));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    throw Error(fmt::format("'{}' is {}; give the name of a file", path, S_ISDIR(status.st_mode) ? "a folder" : "not a regular file"));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) throw Error(fmt::format("cannot map '{}': {}", path, std::strerror(errno)));
    data_ = static_cast<const std::byte*>(at);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace zeroplan
