#pragma once
// Weight bytes of a model, read by range. Safe to call from several threads.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "graph/ir/graph.h"

namespace zeroplan {

class WeightFiles {
 public:
  explicit WeightFiles(std::string model_path);
  ~WeightFiles();
  WeightFiles(const WeightFiles&) = delete;
  WeightFiles& operator=(const WeightFiles&) = delete;

  // `file` as in WeightSource: relative to the model's folder, empty = the model. Throws Error where it may not be opened.
  int64_t size(const std::string& file);
  // Throws Error on a short file.
  void read(const std::string& file, int64_t offset, int64_t bytes, void* out);
  // The model says that its weights were never written: external files are not opened, and reading one throws Error.
  void set_absent() { absent_ = true; }
  bool absent() const { return absent_; }
  // Digest of the model (read_model.h), kept as long as the model's file is the one that it was read from; empty: not known.
  void keep_digest(std::string digest);
  std::string kept_digest() const;
  const std::string& model_path() const { return model_path_; }
  std::string folder() const;  // of the model; "." where the path has none

 private:
  int descriptor(const std::string& file);
  std::string model_path_;
  bool absent_ = false;
  std::string digest_;
  std::vector<int64_t> digest_of_;  // what tells the model's file from a changed one
  std::mutex mutex_;
  std::map<std::string, int> open_;
};

// Elements first … first + count - 1 of the source, converted to `dtype` (f32 or f64).
void read_weight(WeightFiles& files, const WeightSource& source, int64_t first, int64_t count, DType dtype, void* out);

}  // namespace zeroplan
