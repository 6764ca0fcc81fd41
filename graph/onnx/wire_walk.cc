#include "graph/onnx/wire_walk.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"
#include "graph/onnx/wire_message.h"

namespace zeroplan {
namespace {

class StripWalk : public MessageWalk {
 public:
  using MessageWalk::MessageWalk;

  WireModel strip() {
    run();
    int64_t kept = static_cast<int64_t>(bytes_.size());
    for (const WireEdit& edit : edits_) kept += static_cast<int64_t>(edit.bytes.size()) - edit.removed;
    if (kept > kProtobufLimit)
      throw Error(fmt::format("the model holds {} bytes besides its weights (limit {}); store the tensors as initializers or external data",
                              kept, kProtobufLimit));
    const auto* bytes = reinterpret_cast<const char*>(bytes_.data());
    int64_t from = 0;
    model_.stripped.reserve(kept);
    for (const WireEdit& edit : edits_) {
      model_.stripped.append(bytes + from, edit.offset - from);
      model_.stripped += edit.bytes;
      from = edit.offset + edit.removed;
    }
    model_.stripped.append(bytes + from, bytes_.size() - from);
    return std::move(model_);
  }

 private:
  void found(const TensorField& field) override {
    const TensorPayload* before = model_.find(field.path);
    const bool varints = field.number == kInt32Data;
    if (varints && before) {
      if (before->field == kInt32Data) drop(field.path);  // in several pieces; beside other data it is refused later
      return;
    }
    if (before && before->field != kInt32Data) fail("the data of one tensor comes in several pieces");
    const TensorPayload payload{field.offset, field.length, field.number, !varints && field.length >= kStripBytes};
    keep(field.path, payload);
    if (payload.stripped) replace(field, {}, 0);
  }

  void keep(const TensorPath& path, const TensorPayload& payload) {
    if (path.size() == 1)
      model_.initializers[path[0]] = payload;
    else if (path.size() == 2)
      model_.attributes[{path[0], path[1]}] = payload;
    else
      model_.nested[path] = payload;
  }

  void drop(const TensorPath& path) {
    if (path.size() == 1)
      model_.initializers.erase(path[0]);
    else if (path.size() == 2)
      model_.attributes.erase({path[0], path[1]});
    else
      model_.nested.erase(path);
  }

  WireModel model_;
};

}  // namespace

const TensorPayload* WireModel::find(const TensorPath& path) const {
  const auto known = [](const auto& map, const auto& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  };
  if (path.size() == 1) return known(initializers, path[0]);
  if (path.size() == 2) return known(attributes, std::pair{path[0], path[1]});
  return known(nested, path);
}

WireModel walk_model(std::span<const std::byte> file) {
  if (file.empty()) throw Error("not a valid ONNX model: the file is empty; export or copy it again");
  return StripWalk(file).strip();
}

}  // namespace zeroplan
