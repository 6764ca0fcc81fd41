#pragma once
// Columns of convolutions: copies of what each result point reads, and the way back.
#include "graph/ops/conv_shape.h"
#include "kernels/kernel.h"

namespace zeroplan::kernels_cuda {

// A chunk of a convolution: images [image, image + images), points [point, point + points) of their results, channels [channel,
// channel + channels) of each group.
struct ColumnChunk {
  int64_t image = 0, images = 0, point = 0, points = 0, channel = 0, channels = 0;
};

// x [batch, groups, in_channels, in points]; columns: element of image i, row r of [groups, channels, taps], point p at
// i · image_stride + r · row_stride + p. Zero where a tap lies outside of x.
struct ColumnLayout {
  int64_t image_stride, row_stride;
};
void fill_columns(const KernelArgs& args, const ConvShape& shape, const ColumnChunk& chunk, const ColumnLayout& layout, const TensorView& x,
                  void* columns);

// columns [images, groups, channels, taps, out points] in the type that dx's elements are computed in; the chunk's part of dx [batch,
// groups, in_channels, in points] gets the sums over them.
void fold_columns(const KernelArgs& args, const ConvShape& shape, const ColumnChunk& chunk, const void* columns, const TensorView& dx);

// sum += addend, [count] each.
void add_to(const KernelArgs& args, int64_t count, DType dtype, const void* addend, void* sum);
// to [count] of to.dtype = from, rounded.
void narrow_to(const KernelArgs& args, DType dtype, const void* from, const TensorView& to);

}  // namespace zeroplan::kernels_cuda
