#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

namespace {

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

int64_t free_bytes(const std::string& path) {
  std::error_code code;
  const std::filesystem::space_info space = std::filesystem::space(folder_of(path), code);
  return code || space.available > INT64_MAX ? INT64_MAX : static_cast<int64_t>(space.available);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(fmt::format("{}.tmp{}", path_, ::getpid())) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::create() {
  std::error_code code;
  const auto status = std::filesystem::status(path_, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Error(fmt::format("cannot write '{}': it is a folder or a device; give a file name", path_));
  const auto open = [&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644); };
  fd_ = open();
  if (fd_ < 0 && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) fd_ = open();  // left by a process of the same number
  if (fd_ < 0) fail("; choose a folder that exists and is writable");
}

void OutputFile::write(const void* bytes, int64_t count) {
  write_at(position_, bytes, count);
  position_ += count;
}

void OutputFile::write_at(int64_t at, const void* bytes, int64_t count) {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::pwrite(fd_, from, static_cast<size_t>(std::min<int64_t>(count, int64_t{1} << 30)), at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail();
    from += done;
    at += done;
    count -= done;
  }
}

void OutputFile::pad_to(int64_t position) {
  if (position <= position_) return;
  if (::ftruncate(fd_, position) != 0) fail();
  position_ = position;
}

void OutputFile::sync() {
  if (::fsync(fd_) != 0) fail();
}

void OutputFile::commit() {
  sync();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  ::close(fd_);
  fd_ = -1;
  sync_folder();
}

void OutputFile::fail(const char* advice) const {
  const int error = errno;
  if (error == ENOSPC) throw Error(fmt::format("cannot write '{}': the disk is full: {} bytes free", path_, free_bytes(path_)));
  throw Error(fmt::format("cannot write '{}': {}{}", path_, std::strerror(error), advice));
}

// The new name is durable too. Some file systems cannot do that, which is no failure of the file.
void OutputFile::sync_folder() const {
  const int fd = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void require_space(const std::string& path, int64_t bytes) {
  if (const int64_t free = free_bytes(path); free < bytes)
    throw Error(fmt::format("cannot write '{}': the disk is full: {} bytes needed, {} bytes free", path, bytes, free));
}

void write_file(const std::string& path, std::string_view bytes) {
  const auto needed = static_cast<int64_t>(bytes.size());
  OutputFile file(path);
  file.create();
  require_space(path, needed);
  file.write(bytes.data(), needed);
  file.commit();
}

}  // namespace zeroplan
