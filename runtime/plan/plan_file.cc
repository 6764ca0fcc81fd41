#include <sys/stat.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/output_file.h"
#include "runtime/plan/plan.h"

namespace zeroplan {
void save_plan(const Plan& plan, const std::string& path) { write_file(path, serialize_plan(plan)); }

Plan load_plan(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    throw Error(fmt::format("cannot open '{}': {}{}", path, strerror(errno), errno == ENOENT ? "; check the name and the folder" : ""));
  if (!S_ISREG(info.st_mode))
    throw Error(fmt::format("'{}' is {}; give the plan's file", path, S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
  if (info.st_size >= INT32_MAX) throw Error(fmt::format("{}: larger than 2 GiB, which no plan is", path));
  if (info.st_size == 0) throw Error(fmt::format("{}: not a zeroplan plan: the file is empty; compile the model again", path));
  std::ifstream in(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!in.read(bytes.data(), info.st_size)) throw Error(fmt::format("cannot read {}", path));
  return parse_plan(bytes, path);
}

}  // namespace zeroplan
