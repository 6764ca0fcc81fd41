#include "graph/onnx/weights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/external_data.h"

namespace zeroplan {

namespace {

// Device, inode, size and time of change; empty where there is no file.
std::vector<int64_t> file_stamp(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

}  // namespace

WeightFiles::WeightFiles(std::string model_path) : model_path_(std::move(model_path)) {}

WeightFiles::~WeightFiles() {
  for (const auto& [file, fd] : open_) ::close(fd);
}

std::string WeightFiles::folder() const {
  const size_t slash = model_path_.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : model_path_.substr(0, slash);
}

void WeightFiles::keep_digest(std::string digest) {
  digest_ = std::move(digest);
  digest_of_ = file_stamp(model_path_);
}

std::string WeightFiles::kept_digest() const { return !digest_of_.empty() && digest_of_ == file_stamp(model_path_) ? digest_ : ""; }

int WeightFiles::descriptor(const std::string& file) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = open_.find(file);
  if (found != open_.end()) return found->second;
  int fd = -1;
  if (file.empty()) {
    fd = ::open(model_path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) throw Error(fmt::format("cannot open model '{}': {}", model_path_, std::strerror(errno)));
  } else {
    fd = open_beneath(folder(), file);
  }
  open_[file] = fd;
  return fd;
}

namespace {

struct stat status_of(int fd, const std::string& file) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw Error(fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
  return status;
}

}  // namespace

int64_t WeightFiles::size(const std::string& file) { return status_of(descriptor(file), file).st_size; }

int64_t WeightFiles::allocated(const std::string& file) {
  constexpr int64_t kStatBlock = 512;
  return status_of(descriptor(file), file).st_blocks * kStatBlock;
}

void WeightFiles::read(const std::string& file, int64_t offset, int64_t bytes, void* out) {
  if (absent_ && !file.empty())
    throw Error(fmt::format("'{}' was written without weights: it can be compiled and estimated, but not run", model_path_));
  const int fd = descriptor(file);
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, at, static_cast<size_t>(std::min<int64_t>(bytes, int64_t{1} << 30)), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(fmt::format("cannot read {} bytes at {} of '{}': {}", bytes, offset, file.empty() ? model_path_ : file,
                              got < 0 ? std::strerror(errno) : "the file is too short"));
    at += got;
    offset += got;
    bytes -= got;
  }
}

WeightFiles::Mark WeightFiles::last_mark(const std::string& file, int64_t offset, int64_t element) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto& marks = marks_[{file, offset}];
  const auto behind = marks.upper_bound(element);
  return behind == marks.begin() ? Mark{} : Mark{std::prev(behind)->first, std::prev(behind)->second};
}

void WeightFiles::keep_mark(const std::string& file, int64_t offset, Mark mark) {
  std::lock_guard<std::mutex> lock(mutex_);
  marks_[{file, offset}].emplace(mark.element, mark.bytes);
}

}  // namespace zeroplan
