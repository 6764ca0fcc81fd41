#pragma once
#include "graph/onnx/decode.h"

namespace zeroplan {

inline constexpr const char* kMicrosoft = "com.microsoft::";

// The gradients among the operators of com.microsoft that are compositions; part of add_microsoft_decoders.
void add_microsoft_gradients(DecoderTable& table);

}  // namespace zeroplan
