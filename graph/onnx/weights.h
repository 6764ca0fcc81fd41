#pragma once
// The files that the weights of a model lie in, read by range. Safe to call from several threads.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zeroplan {

class WeightFiles {
 public:
  explicit WeightFiles(std::string model_path);
  ~WeightFiles();
  WeightFiles(const WeightFiles&) = delete;
  WeightFiles& operator=(const WeightFiles&) = delete;

  // `file` as in WeightSource: relative to the model's folder, empty = the model. Throws Error where it may not be opened.
  int64_t size(const std::string& file);
  int64_t allocated(const std::string& file);  // bytes that the file system keeps for it: fewer than its size where it has holes
  // Throws Error on a short file.
  void read(const std::string& file, int64_t offset, int64_t bytes, void* out);
  // Where element `element` of a run of elements of unequal length begins; runs begin at `offset` of `file`.
  struct Mark {
    int64_t element = 0, bytes = 0;  // from the begin of the run
  };
  // The last one kept at or before `element`; else the begin of the run.
  Mark last_mark(const std::string& file, int64_t offset, int64_t element);
  void keep_mark(const std::string& file, int64_t offset, Mark mark);
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
  std::map<std::pair<std::string, int64_t>, std::map<int64_t, int64_t>> marks_;  // of (file, offset): element -> bytes
};

}  // namespace zeroplan
