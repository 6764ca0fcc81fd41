#include "graph/onnx/wire_walk.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/limits.h"

namespace zeroplan {
namespace {

enum class Message : uint8_t { leaf, model, training, graph, node, attribute, tensor, sparse, function, value_info, type, wrapped_type };

struct Child {
  Message parent;
  int field;
  Message child;
};

// Field numbers of onnx.proto.
constexpr Child kChildren[] = {
    {Message::model, 7, Message::graph},          {Message::model, 20, Message::training},   {Message::model, 25, Message::function},
    {Message::training, 1, Message::graph},       {Message::training, 2, Message::graph},    {Message::graph, 1, Message::node},
    {Message::graph, 5, Message::tensor},         {Message::graph, 11, Message::value_info}, {Message::graph, 12, Message::value_info},
    {Message::graph, 13, Message::value_info},    {Message::graph, 15, Message::sparse},     {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},     {Message::attribute, 6, Message::graph},   {Message::attribute, 10, Message::tensor},
    {Message::attribute, 11, Message::graph},     {Message::attribute, 14, Message::type},   {Message::attribute, 15, Message::type},
    {Message::attribute, 22, Message::sparse},    {Message::attribute, 23, Message::sparse}, {Message::sparse, 1, Message::tensor},
    {Message::sparse, 2, Message::tensor},        {Message::function, 7, Message::node},     {Message::function, 11, Message::attribute},
    {Message::function, 12, Message::value_info}, {Message::value_info, 2, Message::type},   {Message::type, 4, Message::wrapped_type},
    {Message::type, 5, Message::wrapped_type},    {Message::type, 9, Message::wrapped_type}, {Message::wrapped_type, 1, Message::type},
    {Message::wrapped_type, 2, Message::type},
};

Message child_kind(Message parent, int field) {
  for (const Child& c : kChildren)
    if (c.parent == parent && c.field == field) return c.child;
  return Message::leaf;
}

bool is_name(Message parent, int field) {
  switch (parent) {
    case Message::node: return field <= 4 || field == 7;
    case Message::graph: return field == 2;
    case Message::tensor: return field == 8;
    case Message::value_info:
    case Message::attribute: return field == 1;
    case Message::function: return field == 1 || field == 4 || field == 5 || field == 10;
    default: return false;
  }
}

struct Frame {
  Message kind;
  int64_t end;
  int64_t length_at;  // where the length varint of this message lies
  int64_t length_bytes;
  int64_t begin;
  int64_t removed = 0;
  int index = 0;  // of this message among its siblings of one field
  int field = 0;
  int nodes = 0, tensors = 0, attributes = 0;
  bool once = false;  // a singular child or payload was seen
};

struct Edit {
  int64_t offset;
  int64_t removed;
  std::string replacement;
};

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>((value & 127) | 128));
  out.push_back(static_cast<char>(value));
  return out;
}

class Walk {
 public:
  explicit Walk(std::span<const std::byte> file) : file_(file) {}

  WireModel run() {
    stack_.push_back({Message::model, static_cast<int64_t>(file_.size()), -1, 0, 0});
    while (!stack_.empty()) {
      if (at_ == stack_.back().end)
        pop();
      else
        field();
    }
    apply();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("not a valid ONNX model: {} at byte {}; the file is cut off or of another kind, so export or copy it again",
                            what, at_));
  }

  uint64_t read_varint(int64_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ >= end) fail("a number runs past the end of its message");
      const auto byte = static_cast<uint8_t>(file_[at_++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail("a number is longer than ten bytes");
  }

  void skip(int64_t bytes, int64_t end) {
    if (bytes > end - at_) fail("a field runs past the end of its message");
    at_ += bytes;
  }

  void field() {
    const int64_t end = stack_.back().end, start = at_;
    const uint64_t tag = read_varint(end);
    if (tag >> 3 == 0 || tag >> 32) fail("a field number is out of range");
    const int number = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0: read_varint(end); return;
      case 1: skip(8, end); return;
      case 5: skip(4, end); return;
      case 2: break;
      default: fail("a wire type that ONNX does not use");
    }
    const int64_t length_at = at_;
    const uint64_t length = read_varint(end);
    if (length > static_cast<uint64_t>(end - at_)) fail("a field runs past the end of its message");
    delimited(number, start, length_at, static_cast<int64_t>(length));
  }

  void delimited(int number, int64_t start, int64_t length_at, int64_t length) {
    Frame& parent = stack_.back();
    if (is_name(parent.kind, number) && length > kMaxNameBytes) fail(fmt::format("a name of {} bytes (limit {})", length, kMaxNameBytes));
    const Message kind = child_kind(parent.kind, number);
    if (kind == Message::leaf) {
      if (parent.kind == Message::tensor) payload(number, start, length);
      at_ += length;
      return;
    }
    Frame frame{kind, at_ + length, length_at, at_ - length_at, at_};
    frame.field = number;
    count(parent, frame);
    if (static_cast<int>(stack_.size()) >= kMaxMessageDepth) fail(fmt::format("messages nest deeper than {}", kMaxMessageDepth));
    stack_.push_back(frame);
  }

  void count(Frame& parent, Frame& frame) {
    const bool graph_of_model = parent.kind == Message::model && frame.kind == Message::graph;
    const bool of_attribute = parent.kind == Message::attribute && (frame.field == 5 || frame.field == 6);
    if (graph_of_model || of_attribute) {
      if (parent.once) fail("a field that may occur once occurs twice");
      parent.once = true;
    }
    if (frame.kind == Message::node) {
      frame.index = parent.nodes++;
      if (++nodes_ > kMaxNodes) fail(fmt::format("more than {} nodes", kMaxNodes));
    } else if (frame.kind == Message::tensor) {
      frame.index = parent.tensors++;
      if (++tensors_ > kMaxTensors) fail(fmt::format("more than {} tensors", kMaxTensors));
    } else if (frame.kind == Message::attribute) {
      frame.index = parent.attributes++;
      if (++attributes_ > kMaxAttributes) fail(fmt::format("more than {} attributes", kMaxAttributes));
    }
  }

  // at_ stands at the first byte of the contents.
  void payload(int number, int64_t start, int64_t length) {
    if (number != 9 && number != 4 && number != 10) return;
    Frame& tensor = stack_.back();
    const TensorPath path = tensor_path();
    if (path.empty()) return;
    if (tensor.once) fail("the data of one tensor comes in several pieces");
    tensor.once = true;
    const TensorPayload found{at_, length, length >= kStripBytes};
    if (path.size() == 1)
      model_.initializers[path[0]] = found;
    else if (path.size() == 2)
      model_.attributes[{path[0], path[1]}] = found;
    else
      model_.nested[path] = found;
    if (!found.stripped) return;
    const int64_t removed = at_ + length - start;
    edits_.push_back({start, removed, {}});
    tensor.removed += removed;
  }

  // Of the tensor that is open; empty: it stands where no weight is looked for.
  TensorPath tensor_path() const {
    if (stack_.back().field != 5 || stack_[1].kind != Message::graph) return {};
    TensorPath path;
    for (size_t i = 2; i < stack_.size(); ++i) {
      const Frame& frame = stack_[i];
      const bool graph = frame.kind == Message::graph && frame.field == 6;
      if (!graph && frame.kind != Message::node && frame.kind != Message::attribute && frame.kind != Message::tensor) return {};
      const bool initializer = frame.kind == Message::tensor && stack_[i - 1].kind == Message::graph;
      if (frame.kind == Message::node || frame.kind == Message::attribute || initializer) path.push_back(frame.index);
    }
    return path;
  }

  void pop() {
    const Frame frame = stack_.back();
    stack_.pop_back();
    if (frame.removed == 0 || stack_.empty()) return;
    const std::string length = varint(static_cast<uint64_t>(frame.end - frame.begin - frame.removed));
    stack_.back().removed += frame.removed + frame.length_bytes - static_cast<int64_t>(length.size());
    edits_.push_back({frame.length_at, frame.length_bytes, length});
  }

  void apply() {
    std::sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
    const auto* bytes = reinterpret_cast<const char*>(file_.data());
    int64_t from = 0, kept = static_cast<int64_t>(file_.size());
    for (const Edit& edit : edits_) kept += static_cast<int64_t>(edit.replacement.size()) - edit.removed;
    if (kept > kMaxStrippedBytes)
      throw Error(fmt::format("the model holds {} bytes besides its weights (limit {}); store the tensors as initializers or external data",
                              kept, kMaxStrippedBytes));
    model_.stripped.reserve(kept);
    for (const Edit& edit : edits_) {
      model_.stripped.append(bytes + from, edit.offset - from);
      model_.stripped += edit.replacement;
      from = edit.offset + edit.removed;
    }
    if (from < static_cast<int64_t>(file_.size())) model_.stripped.append(bytes + from, file_.size() - from);
  }

  std::span<const std::byte> file_;
  int64_t at_ = 0;
  std::vector<Frame> stack_;
  std::vector<Edit> edits_;
  int64_t nodes_ = 0, tensors_ = 0, attributes_ = 0;
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
  return Walk(file).run();
}

}  // namespace zeroplan
