#pragma once
// A folder below the system's temporary one, which goes with everything in it.
#include <string>

namespace zeroplan {

class TemporaryFolder {
 public:
  TemporaryFolder();  // throws Error
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace zeroplan
