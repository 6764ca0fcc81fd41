#include "graph/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

int64_t parse_size(const std::string& tensor, const std::string& key, const std::string& text) {
  int64_t value = 0;
  bool valid = !text.empty() && text.size() <= 19;
  for (size_t i = 0; valid && i < text.size(); ++i) {
    const int digit = text[i] - '0';
    valid = digit >= 0 && digit <= 9 && !__builtin_mul_overflow(value, int64_t{10}, &value) &&
            !__builtin_add_overflow(value, int64_t{digit}, &value);
  }
  if (!valid)
    throw Error(fmt::format("initializer '{}': external {} '{}' is not a decimal number that fits 63 bits; export the model again", tensor,
                            key, text));
  return value;
}

std::vector<std::string> components(const std::string& location) {
  const auto refuse = [&](const char* why) {
    throw Error(fmt::format("external data location '{}' is refused: {}; it must name a file below the model's folder", location, why));
  };
  if (location.empty()) refuse("it is empty");
  if (location.find("_ORT_") != std::string::npos) refuse("it is a runtime's memory address");
  if (location[0] == '/') refuse("it is absolute");
  for (char c : location)
    if (c == '\\' || c == ':' || c == '\0' || c == '*') refuse("it holds a character that a relative path may not have");
  std::vector<std::string> parts;
  for (size_t from = 0; from <= location.size();) {
    const size_t slash = std::min(location.find('/', from), location.size());
    const std::string part = location.substr(from, slash - from);
    if (part == "..") refuse("it leaves the folder");
    if (part.empty()) refuse("a component is empty");
    if (part != ".") parts.push_back(part);
    from = slash + 1;
  }
  if (parts.empty()) refuse("it names a folder");
  return parts;
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  void reset(int next) {
    if (fd >= 0) ::close(fd);
    fd = next;
  }
};

}  // namespace

ExternalRange parse_external(const std::string& tensor, const std::vector<std::pair<std::string, std::string>>& entries) {
  ExternalRange range;
  std::set<std::string> seen;
  for (const auto& [key, value] : entries) {
    if (!seen.insert(key).second) throw Error(fmt::format("initializer '{}': external data states '{}' twice", tensor, key));
    if (key == "location") range.location = value;
    if (key == "offset") range.offset = parse_size(tensor, key, value);
    if (key == "length") range.length = parse_size(tensor, key, value);
  }
  try {
    components(range.location);
  } catch (const Error& error) {
    throw Error(fmt::format("initializer '{}': {}", tensor, error.message()));
  }
  return range;
}

int open_beneath(const std::string& folder, const std::string& location) {
  const std::vector<std::string> parts = components(location);
  const auto refuse = [&](const std::string& why) { throw Error(fmt::format("external data file '{}' is refused: {}", location, why)); };
  Descriptor at;
  at.fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at.fd < 0) refuse(fmt::format("the model's folder '{}' cannot be opened ({})", folder, std::strerror(errno)));
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    const int next = ::openat(at.fd, parts[i].c_str(), flags);
    if (next < 0 && errno == ENOENT)
      throw Error(fmt::format("external data file '{}' is missing; it must lie beside the model, in the folder '{}'", location, folder));
    if (next < 0) refuse(errno == ELOOP || errno == ENOTDIR ? "a link, or not a folder, on the way" : std::strerror(errno));
    at.reset(next);
  }
  struct stat status {};
  if (::fstat(at.fd, &status) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse("it is not a regular file");
  if (status.st_nlink > 1) refuse("it has more than one hard link; copy it");
  const int fd = at.fd;
  at.fd = -1;
  return fd;
}

}  // namespace zeroplan
