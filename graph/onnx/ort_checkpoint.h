#pragma once
// ONNX Runtime's training checkpoint: a flatbuffer (file identifier ODTC, version 2) of parameters by name, and its companion of external
// data.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"

namespace zeroplan {

struct CheckpointTensor {
  std::string name;
  int type = 0;  // TensorProto.DataType
  Shape shape;
  bool trained = false;   // false: frozen
  bool external = false;  // the bytes lie in <checkpoint>.data
  int64_t offset = 0, bytes = 0;
};

struct OrtCheckpoint {
  std::vector<CheckpointTensor> tensors;
  int64_t step = 0;          // of its optimizer; 0: none has been taken
  double learning_rate = 0;  // 0: not stated
};

// By the file's identifier alone.
bool is_checkpoint(std::span<const std::byte> file);
// Time and memory linear in the file. Throws Error where the bytes are no sound checkpoint, or one without values.
OrtCheckpoint read_checkpoint(std::span<const std::byte> file);

}  // namespace zeroplan
