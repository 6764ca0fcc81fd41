#pragma once
// A model written with contents that protobuf never sees, of any size.
#include <cstdint>
#include <map>
#include <string>

#include "base/output_file.h"
#include "graph/onnx/wire_walk.h"

namespace zeroplan {

// Writes a serialised model whose tensors at the given paths hold something in place of their contents; those get room of the given size,
// zeros so far. Returns where in the file each one's contents begin.
std::map<TensorPath, int64_t> write_spliced(const std::string& message, const std::map<TensorPath, int64_t>& sizes, OutputFile& file);

}  // namespace zeroplan
