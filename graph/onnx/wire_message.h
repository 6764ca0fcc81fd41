#pragma once
// The walk over a model's wire format that reading and writing share: iterative, linear in the bytes, within limits (limits.h).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// A field of a tensor that holds its contents: from `start`, where its tag lies, to offset + length, where the contents end.
struct TensorField {
  TensorPath path;
  int number = 0;
  int64_t start = 0, offset = 0, length = 0;
};

// A stretch of the message with something else in its place: `bytes`, then `gap` bytes that are not known here.
struct WireEdit {
  int64_t offset = 0, removed = 0;
  std::string bytes;
  int64_t gap = 0;
};

class MessageWalk {
 public:
  explicit MessageWalk(std::span<const std::byte> bytes);
  virtual ~MessageWalk();
  MessageWalk(const MessageWalk&) = delete;
  MessageWalk& operator=(const MessageWalk&) = delete;
  // Throws Error where the bytes are no model or break a limit.
  void run();

 protected:
  // Told of every field with contents in the graph and its subgraphs, in order. It may call replace on that field.
  virtual void found(const TensorField& field) = 0;
  // The lengths of the messages around it follow.
  void replace(const TensorField& field, std::string with, int64_t gap);
  [[noreturn]] void fail(const std::string& what) const;

  std::span<const std::byte> bytes_;
  std::vector<WireEdit> edits_;  // in order once run() is done

 private:
  struct Frame;
  uint64_t read_varint(int64_t end);
  void skip(int64_t bytes, int64_t end);
  void field();
  void delimited(int number, int64_t start, int64_t length_at, int64_t length);
  void count(Frame& parent, Frame& frame);
  void contents(int number, int64_t start, int64_t length);
  TensorPath tensor_path() const;
  void pop();

  int64_t at_ = 0;
  std::vector<Frame> stack_;
  int64_t nodes_ = 0, tensors_ = 0, attributes_ = 0;
};

std::string wire_varint(uint64_t value);

}  // namespace zeroplan
