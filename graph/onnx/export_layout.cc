#include "graph/onnx/export_layout.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "graph/onnx/parse_model.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPage = 4096;  // what ONNX asks offsets to be aligned to

std::string plain(const std::string& location) { return fs::path(location).lexically_normal().string(); }

void set_entry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  for (auto& entry : *tensor.mutable_external_data())
    if (entry.key() == key) return entry.set_value(value);
  auto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

void drop_entry(onnx::TensorProto& tensor, const std::string& key) {
  auto& entries = *tensor.mutable_external_data();
  entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.key() == key; }), entries.end());
}

std::string entry_of(const onnx::TensorProto& tensor, const std::string& key) {
  for (const auto& entry : tensor.external_data())
    if (entry.key() == key) return entry.value();
  return "";
}

// What lies in one file already, tensors taken in the order of their places.
class Occupied {
 public:
  // False: something else lies there. Two tensors may share bytes that stay as they are, and all bytes of one parameter.
  bool take(const ExportContents& c) {
    const Stretch stretch{c.offset, c.offset + c.bytes, c.parameter, c.transposed};
    const bool constant = c.parameter == kNone;
    const bool over_constant = constants_end_ > stretch.begin, over_trained = trained_.end > stretch.begin;
    const bool same = std::tie(trained_.begin, trained_.end, trained_.parameter, trained_.transposed) ==
                      std::tie(stretch.begin, stretch.end, stretch.parameter, stretch.transposed);
    if (constant ? over_trained : over_constant || (over_trained && !same)) return false;
    if (constant)
      constants_end_ = std::max(constants_end_, stretch.end);
    else
      trained_ = stretch;
    return true;
  }

 private:
  struct Stretch {
    int64_t begin = -1, end = -1;
    int parameter = kNone;
    bool transposed = false;
  };
  int64_t constants_end_ = -1;
  Stretch trained_;
};

}  // namespace

ExportLayout::ExportLayout(WeightFiles& files, const std::string& path) : model_files_(files), path_(path) {}

ExportLayout::~ExportLayout() {
  files_.clear();  // and with them what was not committed
  std::error_code error;
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) fs::remove(*folder, error);  // where empty
}

std::string ExportLayout::path_of(const std::string& location) const { return (fs::path(path_).parent_path() / location).string(); }

bool ExportLayout::is_models_own(const std::string& path) const {
  std::error_code error;
  return std::any_of(own_files_.begin(), own_files_.end(), [&](const std::string& own) { return fs::equivalent(own, path, error); });
}

// The file that the export replaces may name the location too: then it is that of an earlier export.
bool ExportLayout::belongs_to_overwritten(const std::string& location) const {
  std::error_code error;
  if (!fs::is_regular_file(path_, error)) return false;
  try {
    const MappedFile file(path_);
    const onnx::ModelProto model = parse_model(walk_model(file.bytes()));
    const auto& tensors = model.graph().initializer();
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& t) { return plain(entry_of(t, "location")) == location; });
  } catch (const Error&) {
    return false;  // no model
  }
}

bool ExportLayout::is_taken(const std::string& location) const {
  const auto has_it = [&](const DataFile& file) { return file.location == location; };
  return is_models_own(path_of(location)) || std::any_of(files_.begin(), files_.end(), has_it);
}

// Kept, unless another file of that name is there; then with the export's name in place of the model's, or in front.
std::string ExportLayout::new_location(const std::string& before) const {
  std::error_code error;
  if (!is_taken(before) && (!fs::exists(path_of(before), error) || belongs_to_overwritten(before))) return before;
  const fs::path old(before), model(model_files_.model_path()), exported(path_);
  if (before == exported.filename().string() + ".data" && !is_taken(before)) return before;  // of an earlier export
  std::string name = old.filename().string();
  const auto swap = [&](const std::string& from, const std::string& to) {
    const bool starts = !from.empty() && name.size() > from.size() && name.rfind(from, 0) == 0 &&
                        std::isalnum(static_cast<unsigned char>(name[from.size()])) == 0;
    if (starts) name = to + name.substr(from.size());
    return starts;
  };
  if (!swap(model.filename().string(), exported.filename().string()) && !swap(model.stem().string(), exported.stem().string()))
    name = exported.filename().string() + "." + name;
  while (is_taken((old.parent_path() / name).string())) name = exported.filename().string() + "." + name;
  return (old.parent_path() / name).string();
}

int ExportLayout::file_of(const std::string& location, std::vector<std::string>& report) {
  const std::string before = plain(location);
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i].before == before) return static_cast<int>(i);
  DataFile file{before, new_location(before), nullptr};
  if (file.location != before)
    report.push_back(
        fmt::format("external data '{}' is called '{}' in the export, as a file of that name is there", before, file.location));
  file.output = std::make_unique<OutputFile>(path_of(file.location));
  files_.push_back(std::move(file));
  return static_cast<int>(files_.size()) - 1;
}

void ExportLayout::place(ExportedModel& model, std::vector<std::string>& report) {
  std::vector<ExportContents*> external;
  own_files_ = {model_files_.model_path()};
  for (ExportContents& c : model.contents) {
    if (c.location.empty()) continue;
    external.push_back(&c);
    if (!c.file.empty()) own_files_.push_back(model_files_.folder() + "/" + c.file);
  }
  std::stable_sort(external.begin(), external.end(), [](const ExportContents* a, const ExportContents* b) {
    return std::tuple(plain(a->location), a->offset, a->bytes) < std::tuple(plain(b->location), b->offset, b->bytes);
  });
  std::vector<Occupied> occupied;
  std::vector<ExportContents*> moved;  // to the end of their files
  for (ExportContents* c : external) {
    const std::string spelled = entry_of(*c->tensor, "location");
    c->data_file = file_of(c->location, report);
    DataFile& file = files_[c->data_file];
    if (file.location != file.before || spelled.empty()) set_entry(*c->tensor, "location", file.location);
    if (c->parameter != kNone) drop_entry(*c->tensor, "checksum");
    occupied.resize(files_.size());
    c->place = c->offset;
    if (c->bytes == 0) continue;
    if (spelled.empty()) {  // the original has no such tensor, or has it elsewhere
      moved.push_back(c);
    } else if (occupied[c->data_file].take(*c)) {
      file.end = std::max(file.end, c->place + c->bytes);
    } else {
      moved.push_back(c);
      report.push_back(fmt::format("'{}' shared its bytes in '{}' with another tensor and has some of its own in the export",
                                   c->tensor->name(), file.before));
    }
  }
  for (ExportContents* c : moved) {
    DataFile& file = files_[c->data_file];
    c->place = round_up(file.end, kPage);
    file.end = c->place + c->bytes;
    set_entry(*c->tensor, "offset", std::to_string(c->place));
    set_entry(*c->tensor, "length", std::to_string(c->bytes));
  }
}

void ExportLayout::create() {
  for (DataFile& file : files_) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path folder = fs::path(file.output->path()).parent_path(); !folder.empty() && !fs::exists(folder, error);
         folder = folder.parent_path())
      missing.push_back(folder);
    for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder)
      if (fs::create_directory(*folder, error)) folders_.push_back(folder->string());
    file.output->create();
    file.output->pad_to(file.end);
  }
}

void ExportLayout::sync() {
  for (DataFile& file : files_) file.output->sync();
}

std::vector<std::string> ExportLayout::commit() {
  std::vector<std::string> paths;
  for (DataFile& file : files_) {
    file.output->commit();
    paths.push_back(file.output->path());
  }
  folders_.clear();
  return paths;
}

}  // namespace zeroplan
