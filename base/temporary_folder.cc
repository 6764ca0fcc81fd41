#include "base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

TemporaryFolder::TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "zeroplan-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw Error(fmt::format("cannot make a folder {}: {}", path_, std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace zeroplan
