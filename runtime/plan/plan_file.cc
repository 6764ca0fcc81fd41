#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "runtime/plan/plan.h"

namespace zeroplan {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : path_(fmt::format("{}.{}.tmp", target, getpid())) {
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) throw Error(fmt::format("cannot write {}: {}; choose a folder that exists and is writable", target, strerror(errno)));
  }
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const std::string& bytes, const std::string& target) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(target, bytes.size());
      done += static_cast<size_t>(n);
    }
    if (fsync(fd_) != 0) fail(target, bytes.size());
  }

  void rename_to(const std::string& target) {
    if (rename(path_.c_str(), target.c_str()) != 0) throw Error(fmt::format("cannot rename {} to {}: {}", path_, target, strerror(errno)));
    path_.clear();
  }

 private:
  [[noreturn]] void fail(const std::string& target, size_t needed) {
    const int error = errno;
    struct statvfs space {};
    if (error == ENOSPC && fstatvfs(fd_, &space) == 0)
      throw Error(fmt::format("cannot write {}: the disk is full: {} bytes needed, {} bytes free", target, needed,
                              static_cast<uint64_t>(space.f_bavail) * space.f_frsize));
    throw Error(fmt::format("cannot write {}: {}", target, strerror(error)));
  }

  std::string path_;
  int fd_ = -1;
};

void sync_folder(const std::string& target) {
  const std::string folder = std::filesystem::path(target).parent_path().string();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void require_space(const std::string& path, size_t needed) {
  std::error_code code;
  const auto folder = std::filesystem::absolute(path).parent_path();
  const auto space = std::filesystem::space(folder, code);
  if (!code && space.available < needed)
    throw Error(fmt::format("cannot write {}: the disk is full: {} bytes needed, {} bytes free", path, needed, space.available));
}

}  // namespace

void save_plan(const Plan& plan, const std::string& path) {
  const std::string bytes = serialize_plan(plan);
  if (std::filesystem::is_directory(path)) throw Error(fmt::format("cannot write {}: it is a folder; give a file name", path));
  require_space(path, bytes.size());
  TemporaryFile file(path);
  file.write(bytes, path);
  file.rename_to(path);
  sync_folder(path);
}

Plan load_plan(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) throw Error(fmt::format("cannot read {}: {}", path, strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw Error(fmt::format("cannot read {}: not a file", path));
  if (info.st_size >= INT32_MAX) throw Error(fmt::format("{}: larger than 2 GiB, which no plan is", path));
  std::ifstream in(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!in.read(bytes.data(), info.st_size)) throw Error(fmt::format("cannot read {}", path));
  return parse_plan(bytes, path);
}

}  // namespace zeroplan
