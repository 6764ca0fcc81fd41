#pragma once
// Decoders of the operators on boxes, each in a file of its own.
#include "graph/onnx/decode.h"

namespace zeroplan {

void decode_roi_align(DecodeContext& c);
void decode_non_max_suppression(DecodeContext& c);

}  // namespace zeroplan
