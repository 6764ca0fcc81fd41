#pragma once
// Options of the import of a fuzzed file. They take turns by its size, so that an input alone says what was done with it.
#include <string>

#include "graph/onnx/importer.h"

namespace zeroplan {

// Every symbol of the model is bound; the loss and the outputs are open.
ImportOptions input_options(const std::string& path, const ModelFile& file);

}  // namespace zeroplan
