#include "graph/onnx/wire_message.h"

#include <algorithm>

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

}  // namespace

struct MessageWalk::Frame {
  Message kind;
  int64_t end;
  int64_t length_at;  // where the length varint of this message lies
  int64_t length_bytes;
  int64_t begin;
  int64_t removed = 0;  // bytes that edits take out of it; negative: they add some
  int index = 0;        // of this message among its siblings of one field
  int field = 0;
  int nodes = 0, tensors = 0, attributes = 0;
  bool once = false;  // a singular child was seen
};

std::string wire_varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>((value & 127) | 128));
  out.push_back(static_cast<char>(value));
  return out;
}

MessageWalk::MessageWalk(std::span<const std::byte> bytes) : bytes_(bytes) {}

MessageWalk::~MessageWalk() = default;

void MessageWalk::run() {
  stack_.push_back({Message::model, static_cast<int64_t>(bytes_.size()), -1, 0, 0});
  while (!stack_.empty()) {
    if (at_ == stack_.back().end)
      pop();
    else
      field();
  }
  std::sort(edits_.begin(), edits_.end(), [](const WireEdit& a, const WireEdit& b) { return a.offset < b.offset; });
}

void MessageWalk::fail(const std::string& what) const {
  throw Error(
      fmt::format("not a valid ONNX model: {} at byte {}; the file is cut off or of another kind, so export or copy it again", what, at_));
}

uint64_t MessageWalk::read_varint(int64_t end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ >= end) fail("a number runs past the end of its message");
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
  fail("a number is longer than ten bytes");
}

void MessageWalk::skip(int64_t bytes, int64_t end) {
  if (bytes > end - at_) fail("a field runs past the end of its message");
  at_ += bytes;
}

void MessageWalk::field() {
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

void MessageWalk::delimited(int number, int64_t start, int64_t length_at, int64_t length) {
  Frame& parent = stack_.back();
  if (is_name(parent.kind, number) && length > kMaxNameBytes) fail(fmt::format("a name of {} bytes (limit {})", length, kMaxNameBytes));
  const Message kind = child_kind(parent.kind, number);
  if (kind == Message::leaf) {
    if (parent.kind == Message::tensor) contents(number, start, length);
    at_ += length;
    return;
  }
  Frame frame{kind, at_ + length, length_at, at_ - length_at, at_};
  frame.field = number;
  count(parent, frame);
  if (static_cast<int>(stack_.size()) >= kMaxMessageDepth) fail(fmt::format("messages nest deeper than {}", kMaxMessageDepth));
  stack_.push_back(frame);
}

void MessageWalk::count(Frame& parent, Frame& frame) {
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
void MessageWalk::contents(int number, int64_t start, int64_t length) {
  if (number != kRawData && number != kFloatData && number != kDoubleData && number != kInt32Data) return;
  TensorPath path = tensor_path();
  if (!path.empty()) found({std::move(path), number, start, at_, length});
}

// Of the tensor that is open; empty: it stands where no weight is looked for.
TensorPath MessageWalk::tensor_path() const {
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

void MessageWalk::replace(const TensorField& field, std::string with, int64_t gap) {
  const int64_t removed = field.offset + field.length - field.start;
  stack_.back().removed += removed - static_cast<int64_t>(with.size()) - gap;
  edits_.push_back({field.start, removed, std::move(with), gap});
}

void MessageWalk::pop() {
  const Frame frame = stack_.back();
  stack_.pop_back();
  if (frame.removed == 0 || stack_.empty()) return;
  const std::string length = wire_varint(static_cast<uint64_t>(frame.end - frame.begin - frame.removed));
  stack_.back().removed += frame.removed + frame.length_bytes - static_cast<int64_t>(length.size());
  edits_.push_back({frame.length_at, frame.length_bytes, length});
}

}  // namespace zeroplan
