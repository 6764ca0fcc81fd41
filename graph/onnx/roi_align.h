#pragma once
#include "graph/onnx/decode.h"

namespace zeroplan {

void decode_roi_align(DecodeContext& c);

}  // namespace zeroplan
