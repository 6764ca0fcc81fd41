#pragma once
// The heads of attention operands. Only decoders include this.
#include "graph/onnx/terms.h"

namespace zeroplan {

// Input [B,T,H·D] as [B,H,T,D]; H is an attribute of the node. One of rank 4 is returned as it is.
Term with_heads(DecodeContext& c, int input, const char* heads_attribute);

}  // namespace zeroplan
