#pragma once
// Sizes of windows that slide over spatial axes: of convolutions and pools, as their operators and kernels see them.
#include <cstdint>

#include "graph/ir/attributes.h"
#include "graph/ir/node.h"

namespace zeroplan {

// Result element o reads input elements o·stride − before + t·dilation for t in [0, kernel), where they exist.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, before = 0;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // Results [first, last) whose input element of tap t exists.
  int64_t first_result(int64_t t) const;
  int64_t last_result(int64_t t) const;
};

// The spatial axes are the last of the three; those in front of them have size 1.
struct Windows {
  WindowAxis axis[3];
  int first = 0;  // the first spatial axis
  int64_t in_points() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_points() const { return axis[0].out * axis[1].out * axis[2].out; }
  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
};

// `kernel`: sizes of the windows, one per spatial axis of `x`, which starts with batch and channels. Attributes: strides, pads, dilations.
Windows make_windows(const int64_t* x, int rank, const int64_t* kernel, const Attributes& attributes);

struct ConvShape {
  Windows windows;
  int64_t batch = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // of one group
  // So few channels per group that a loop over planes beats products.
  bool by_planes() const { return groups > 1 && in_channels == 1 && out_channels <= 4; }
  bool unit_strides() const { return windows.axis[0].stride == 1 && windows.axis[1].stride == 1 && windows.axis[2].stride == 1; }
};
ConvShape conv_shape(const int64_t* x, const int64_t* w, int rank, const Attributes& attributes);

// A plane between zeros, so that every tap of every result, and of those that fill up the last sixteen of a row, has an element. Along the
// last axis, elements with the same remainder by the stride lie together: element p of a row is place p / stride of phase p % stride.
struct PaddedPlane {
  int64_t rows[2] = {1, 1};                  // along the first two axes
  int64_t stride = 1, phases = 1, span = 0;  // phases: that taps reach, of `span` elements each
  explicit PaddedPlane(const Windows& w);
  int64_t row() const { return phases * span; }
  int64_t bytes(int64_t element_bytes) const;  // throws Error where that overflows
  int64_t column(int64_t p) const { return p % stride * span + p / stride; }
};

// The windows of the gradient of the input where all strides are 1: the same taps in reverse order over dy.
Windows reversed(const Windows& w);

// Workspace of convolutions by planes, in bytes: offsets of the taps, then for each thread a padded plane and, for the gradient of the
// weight, `sums` vectors of sixteen elements.
struct PlaneWorkspace {
  int64_t plane = 0, sums = 0, thread = 0, total = 0;  // `plane`: where the first thread's part begins; sums: from there
};
PlaneWorkspace plane_workspace(const Windows& w, int64_t sums, int threads, int64_t element_bytes);

// One direction of a convolution: conv reads x and gives y, its input gradient reads dy and gives dx, point by point of the result.
// Work proceeds in chunks: `images` whole images, or `rows` of one image along the first spatial axis. The part of the operand that a
// chunk reads lies in a buffer of `span` points with all channels of a point together.
struct ConvPass {
  bool backward = false;
  int64_t from_channels = 0, to_channels = 0;  // of one group
  int64_t images = 1, rows = 1;
  int64_t chunks = 1, bands = 1;  // bands: chunks per image
  int64_t span[3] = {1, 1, 1};
  int64_t span_points() const { return span[0] * span[1] * span[2]; }
  int64_t points = 0;  // of the result, at most, in a chunk
  // The buffer leaves out what a stride jumps over where windows are single elements: elements from one place to the next, places from one
  // result of a forward pass to the next.
  int64_t step(const WindowAxis& a) const { return !backward && a.kernel == 1 ? a.stride : 1; }
  int64_t pace(const WindowAxis& a) const { return a.stride / step(a); }
};
ConvPass conv_pass(const ConvShape& shape, bool backward);

inline constexpr int64_t kConvLanes = 16;   // channels of the result are padded to a multiple of this
inline constexpr int64_t kConvDepth = 128;  // products summed up before a sum goes back to memory
int64_t padded_channels(int64_t channels);

struct ConvSegment {
  int64_t offset, length, row;  // elements from a point's first one; rows of the packed weights
};

// Parts of the workspace, in bytes from its start.
struct ConvWorkspace {
  int64_t weights = 0, operand = 0, result = 0, from_table = 0, to_table = 0, segments = 0, total = 0;
};
ConvWorkspace conv_workspace(const ConvShape& shape, const ConvPass& pass, int64_t element_bytes);

// Bytes that a convolution or one of its gradients needs, whichever way it takes.
int64_t conv_workspace_bytes(const ConvShape& shape, OpKind op, int threads, int64_t element_bytes);

}  // namespace zeroplan
