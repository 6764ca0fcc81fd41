#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "runtime/data/npy.h"

namespace zeroplan {

FileMapping::FileMapping(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  struct stat info {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  bytes_ = info.st_size;
  void* p = regular && bytes_ > 0 ? mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  const int error = errno;
  close(fd);
  if (!regular) throw Error(fmt::format("{} is not a regular file", path));
  if (p == MAP_FAILED) throw Error(fmt::format("cannot map {}: {}", path, std::strerror(error)));
  data_ = static_cast<const char*>(p);
}

FileMapping::~FileMapping() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), static_cast<size_t>(bytes_));
}

}  // namespace zeroplan
