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
  if (stat(path.c_str(), &info) != 0) throw Error(fmt::format("cannot read {}: {}", path, strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw Error(fmt::format("cannot read {}: not a file", path));
  if (info.st_size >= INT32_MAX) throw Error(fmt::format("{}: larger than 2 GiB, which no plan is", path));
  std::ifstream in(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!in.read(bytes.data(), info.st_size)) throw Error(fmt::format("cannot read {}", path));
  return parse_plan(bytes, path);
}

}  // namespace zeroplan
