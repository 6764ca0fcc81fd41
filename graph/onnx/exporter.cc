#include "graph/onnx/exporter.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/export_layout.h"
#include "graph/onnx/export_mode.h"
#include "graph/onnx/export_splits.h"
#include "graph/onnx/exported_model.h"
#include "graph/onnx/ort_artifacts.h"
#include "graph/onnx/stored_weight.h"
#include "graph/onnx/wire_splice.h"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlock = int64_t{1} << 22;

std::vector<std::byte> transposed(const Shape& shape, int64_t size, std::span<const std::byte> bytes) {
  std::vector<std::byte> out(bytes.size());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) std::memcpy(&out[(j * shape[0] + i) * size], &bytes[(i * shape[1] + j) * size], size);
  return out;
}

bool is_zero(const std::vector<std::byte>& bytes, int64_t count) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, count - 1) == 0;
}

// Into a file that holds zeros: stretches of zeros stay holes.
void copy(WeightFiles& files, const ExportContents& c, OutputFile& out) {
  std::vector<std::byte> block(std::min(c.bytes, kBlock));
  for (int64_t done = 0; done < c.bytes; done += kBlock) {
    const int64_t n = std::min(kBlock, c.bytes - done);
    files.read(c.file, c.offset + done, n, block.data());
    if (!is_zero(block, n)) out.write_at(c.place + done, block.data(), n);
  }
}

// A field of the tensor that is there, but holds nothing yet.
void leave_open(ExportContents& c) {
  onnx::TensorProto& tensor = *c.tensor;
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  if (c.field == kFloatData)
    tensor.add_float_data(0);
  else if (c.field == kDoubleData)
    tensor.add_double_data(0);
  else
    tensor.set_raw_data(std::string(1, '\0'));
}

struct Digest {
  uint64_t high = 0, low = 0;
  bool operator==(const Digest& other) const { return high == other.high && low == other.low; }
};

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

class Export {
 public:
  Export(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters, const GiveParameters& give)
      : path_(path),
        parameters_(parameters),
        give_(give),
        sources_(model_path),
        files_(export_file(model_path, parameters)),
        model_(read_exported(files_)),
        layout_(files_, path_),
        file_(path_) {}

  ExportedFiles run(int64_t largest) {
    add_splits();
    bind_parameters(model_, files_.model_path(), parameters_, splits_);
    append(set_inference_mode(model_.proto));
    if (take_out(model_, fs::path(path_).filename().string() + ".data", largest))
      out_.report.push_back("the checkpoint's tensors are external data of the export, as it would be larger than 2 GB with them");
    layout_.place(model_, out_.report);
    file_.create();
    layout_.create();
    require_space(path_, needed_bytes());
    write_message();
    for (const ExportContents& c : model_.contents)
      if (c.parameter == kNone && c.bytes > 0) copy(files_, c, file_of(c));
    write_parameters();
    layout_.sync();
    file_.sync();
    out_.paths = layout_.commit();
    file_.commit();
    out_.paths.insert(out_.paths.begin(), path_);
    return std::move(out_);
  }

 private:
  void append(std::vector<std::string> lines) { out_.report.insert(out_.report.end(), lines.begin(), lines.end()); }
  OutputFile& file_of(const ExportContents& c) { return c.data_file < 0 ? file_ : layout_.file(c.data_file); }

  // Parts that are equal to what they were merged with need no initializer of their own.
  std::vector<bool> find_joined() {
    std::vector<bool> joined(parameters_.size(), false);
    if (export_rounds(parameters_) == 1) return joined;
    std::map<std::string, std::optional<Digest>> merged;  // what each split initializer holds now
    for (const Parameter& p : parameters_)
      if (!p.split_uses.empty()) merged[p.source.initializer];
    std::vector<std::optional<Digest>> parts(parameters_.size());
    give_([&](int index, std::span<const std::byte> values) {
      const Parameter& p = parameters_.at(index);
      if (!merged.count(p.source.initializer)) return;
      const Digest digest = digest_of(to_stored(sources_, p, values));
      (p.split_uses.empty() ? merged[p.source.initializer] : parts[index]) = digest;
    });
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!parts[i]) continue;
      std::optional<Digest>& whole = merged[parameters_[i].source.initializer];
      if (!whole) whole = stored_digest(parameters_[i]);
      joined[i] = *parts[i] == *whole;
    }
    return joined;
  }

  Digest stored_digest(const Parameter& p) {
    std::vector<std::byte> bytes(elements(p.shape) * stored_bytes(p.source.type));
    read_stored(sources_, p.source, 0, elements(p.shape), bytes.data());
    return digest_of(bytes);
  }

  void add_splits() {
    splits_ = write_splits(model_.proto, parameters_, find_joined());
    for (size_t i = 0; i < splits_.size(); ++i)
      if (!splits_[i].empty())
        out_.report.push_back(fmt::format("'{}' is an initializer of its own in the export, as it differs from '{}' now", splits_[i],
                                          parameters_[i].source.initializer));
  }

  // What is copied may have holes, of which no more is written than the file system holds.
  int64_t needed_bytes() {
    int64_t needed = 0;
    std::map<std::string, int64_t> copied;
    for (const ExportContents& c : model_.contents) (c.parameter == kNone ? copied[c.file] : needed) += c.bytes;
    for (const auto& [file, bytes] : copied) needed += std::min(bytes, files_.allocated(file));
    return needed;
  }

  void write_message() {
    const std::map<const onnx::TensorProto*, TensorPath> paths = tensor_paths(model_.proto.graph());
    std::map<TensorPath, int64_t> sizes;
    for (ExportContents& c : model_.contents) {
      if (c.data_file >= 0) continue;
      leave_open(c);
      sizes[paths.at(c.tensor)] = c.bytes;
    }
    std::string message;
    if (!model_.proto.SerializeToString(&message))
      throw Error(fmt::format("cannot write '{}': the graph without its weights is larger than 2 GB", path_));
    const std::map<TensorPath, int64_t> offsets = write_spliced(message, sizes, file_);
    for (ExportContents& c : model_.contents)
      if (c.data_file < 0) c.place = offsets.at(paths.at(c.tensor));
    if (file_.position() > kProtobufLimit)
      out_.report.push_back(
          fmt::format("'{}' has {} bytes, as the original is one file too; programs that read models by protobuf take at "
                      "most {}, and external data has no such limit",
                      path_, file_.position(), kProtobufLimit));
  }

  void write_parameters() {
    std::map<int, std::vector<const ExportContents*>> targets;
    for (const ExportContents& c : model_.contents)
      if (c.parameter != kNone) targets[c.parameter].push_back(&c);
    std::vector<bool> given(parameters_.size());
    give_([&](int index, std::span<const std::byte> values) {
      const Parameter& p = parameters_.at(index);
      given[index] = true;
      if (!targets.count(index)) return;  // joined again
      const std::vector<std::byte> stored = to_stored(sources_, p, values);
      for (const ExportContents* c : targets.at(index)) {
        const std::vector<std::byte> turned =
            c->transposed ? transposed(p.shape, stored_bytes(p.source.type), stored) : std::vector<std::byte>{};
        file_of(*c).write_at(c->place, c->transposed ? turned.data() : stored.data(), c->bytes);
      }
    });
    for (size_t i = 0; i < given.size(); ++i) check(given[i], "every parameter is given for the export");
  }

  const std::string path_;
  const std::vector<Parameter>& parameters_;
  const GiveParameters& give_;
  WeightFiles sources_, files_;  // of the trained model, and of the one that is written: two among training artifacts
  ExportedModel model_;
  ExportLayout layout_;
  OutputFile file_;
  std::vector<std::string> splits_;
  ExportedFiles out_;
};

}  // namespace

int export_rounds(const std::vector<Parameter>& parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return !p.split_uses.empty(); }) ? 2 : 1;
}

ExportedFiles export_model(const std::string& model_path, const std::string& path, const std::vector<Parameter>& parameters,
                           const GiveParameters& give, int64_t largest) {
  return Export(model_path, path, parameters, give).run(largest);
}

}  // namespace zeroplan
