#include "graph/onnx/wire_splice.h"

#include "base/error.h"
#include "graph/onnx/wire_message.h"

namespace zeroplan {
namespace {

constexpr uint64_t kDelimited = 2;  // wire type

class SpliceWalk : public MessageWalk {
 public:
  SpliceWalk(const std::string& message, const std::map<TensorPath, int64_t>& sizes)
      : MessageWalk(std::as_bytes(std::span(message))), sizes_(sizes) {}

  std::map<TensorPath, int64_t> write(OutputFile& file) {
    run();
    check(starts_.size() == sizes_.size(), "every tensor that is to be filled has a place in the message");
    std::map<TensorPath, int64_t> offsets;
    int64_t from = 0;
    for (const WireEdit& edit : edits_) {
      file.write(bytes_.data() + from, edit.offset - from);
      file.write(edit.bytes.data(), static_cast<int64_t>(edit.bytes.size()));
      if (const auto tensor = starts_.find(edit.offset); tensor != starts_.end()) offsets[tensor->second] = file.position();
      file.pad_to(file.position() + edit.gap);
      from = edit.offset + edit.removed;
    }
    file.write(bytes_.data() + from, static_cast<int64_t>(bytes_.size()) - from);
    return offsets;
  }

 private:
  void found(const TensorField& field) override {
    const auto size = sizes_.find(field.path);
    if (size == sizes_.end()) return;
    starts_[field.start] = field.path;
    const uint64_t tag = static_cast<uint64_t>(field.number) << 3 | kDelimited;
    replace(field, wire_varint(tag) + wire_varint(static_cast<uint64_t>(size->second)), size->second);
  }

  const std::map<TensorPath, int64_t>& sizes_;
  std::map<int64_t, TensorPath> starts_;  // of the fields that are filled
};

}  // namespace

std::map<TensorPath, int64_t> write_spliced(const std::string& message, const std::map<TensorPath, int64_t>& sizes, OutputFile& file) {
  return SpliceWalk(message, sizes).write(file);
}

}  // namespace zeroplan
