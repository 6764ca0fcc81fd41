#include "tools/output_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path first = fs::weakly_canonical(fs::absolute(a, error), error);
  if (error) return false;
  const fs::path second = fs::weakly_canonical(fs::absolute(b, error), error);
  return !error && first == second;
}

void check_place(const NamedFile& output) {
  std::error_code error;
  const fs::path folder = fs::path(output.path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    throw Error(fmt::format("{} {}: its folder {} {}", output.name, output.path, folder.string(),
                            fs::exists(folder, error) ? "is a file; choose another" : "does not exist; create it first"));
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw Error(fmt::format("{} {}: its folder cannot be written to ({}); choose another", output.name, output.path, std::strerror(errno)));
  const fs::file_status status = fs::status(output.path, error);
  if (fs::is_directory(status)) throw Error(fmt::format("{} {} is a folder; give a file name", output.name, output.path));
  if (!output.lines && fs::exists(status) && !fs::is_regular_file(status))
    throw Error(fmt::format("{} {} is a pipe or a device; give a file name", output.name, output.path));
}

}  // namespace

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    check_place(output);
    for (const NamedFile& input : inputs)
      if (!input.path.empty() && same_file(output.path, input.path))
        throw Error(fmt::format("{} {} would overwrite {} ({}); give another file name", output.name, output.path, input.name, input.path));
    for (size_t j = 0; j < i; ++j)
      if (!outputs[j].path.empty() && same_file(output.path, outputs[j].path))
        throw Error(fmt::format("{} and {} name the same file {}; give each a file of its own", outputs[j].name, output.name, output.path));
  }
}

std::vector<NamedFile> model_files(const Plan& plan) {
  std::vector<NamedFile> files = {{"the model", plan.header.model_path}};
  std::set<std::string> external;
  for (const PlanParameter& p : plan.parameters) external.insert(p.parameter.source.file);
  const fs::path folder = fs::path(plan.header.model_path).parent_path();
  for (const std::string& file : external)
    if (!file.empty()) files.push_back({"the model's weights", (folder / file).string()});
  return files;
}

std::vector<NamedFile> data_files(const std::string& folder) {
  std::vector<NamedFile> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".npy") files.push_back({"a data file", entry->path().string()});
  return files;
}

}  // namespace zeroplan
