#pragma once
// Strides, dilations and padding of ONNX operators with sliding windows. Only their decoders include this.
#include <vector>

#include "graph/onnx/decode.h"

namespace zeroplan {

struct SlidingWindows {
  Shape kernel, strides, dilations;
  std::vector<int64_t> pads;  // as the node means them: begins, then ends
  Shape out;
  // Padding at the ends with which whole windows give exactly `out`: ceil_mode adds some, windows that do not fit drop some.
  std::vector<int64_t> covering(const Shape& x) const;
  Attributes attributes(std::vector<int64_t> covering_pads) const;
  int64_t extent(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  int64_t begin(size_t i, int64_t result) const { return result * strides[i] - pads[i]; }  // of the window, on the axis of x
};

// Spatial axes of x [N,C,…]; throws Error where the node's attributes do not fit them.
size_t spatial_axes(const Shape& x);
// A list attribute of `count` entries of at least `least`, or `count` times `otherwise`.
std::vector<int64_t> window_list(const DecodeContext& c, const char* name, size_t count, int64_t otherwise, int64_t least);
SlidingWindows sliding_windows(const DecodeContext& c, const Shape& x, Shape kernel);
// Convolution as the node's attributes have it; input [N,C,…], weight [M,C/groups,…].
ValueId convolution(DecodeContext& c, ValueId input, ValueId weight);
// A factor or term per channel [C], as it is broadcast to [N,C,…] of this rank.
ValueId per_channel(DecodeContext& c, ValueId value, int64_t rank);

}  // namespace zeroplan
