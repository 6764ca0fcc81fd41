#pragma once
// External data of an exported model: the files and places that the original had, as far as they can be kept.
#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "graph/onnx/exported_model.h"

namespace zeroplan {

class ExportLayout {
 public:
  // `path`: of the exported model. Both must outlive the layout.
  ExportLayout(WeightFiles& files, const std::string& path);

  // Gives all external contents of the model a file and a place, and points the model there. What was changed goes to `report`.
  void place(ExportedModel& model, std::vector<std::string>& report);
  // Creates the files, in the size that they get, zeros so far, and folders that locations ask for.
  void create();
  OutputFile& file(int index) { return *files_[index].output; }
  void sync();
  std::vector<std::string> commit();  // the paths
  ~ExportLayout();                    // removes folders that it made, where nothing was committed

 private:
  struct DataFile {
    std::string before, location;  // before: relative to the original model's folder, in its plainest spelling
    std::unique_ptr<OutputFile> output;
    int64_t end = 0;
  };
  int file_of(const std::string& location, std::vector<std::string>& report);
  std::string new_location(const std::string& before) const;
  bool is_taken(const std::string& location) const;
  std::string path_of(const std::string& location) const;
  bool is_models_own(const std::string& path) const;
  bool belongs_to_overwritten(const std::string& location) const;

  WeightFiles& model_files_;
  const std::string path_;
  std::vector<DataFile> files_;
  std::vector<std::string> own_files_;  // of the original model
  std::vector<std::string> folders_;    // that were made, outermost first
};

}  // namespace zeroplan
