#pragma once
#include <string>

#include "graph/onnx/importer.h"
#include "passes/compile_options.h"

namespace zeroplan {

// Checks the options, settles the batch (options.batch and options.micro_batches are filled from the model) and says how to import.
ImportOptions settle_options(const ModelFile& file, CompileOptions& options);

}  // namespace zeroplan
