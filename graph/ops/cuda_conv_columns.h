#pragma once
// How the CUDA kernels of convolutions cut their work up, and the scratch bytes that they take.
#include "graph/ops/conv_shape.h"

namespace zeroplan {

// One direction of a convolution as matrix products over columns: column p holds the elements that result point p reads, a row for each
// channel and tap. Work proceeds in chunks of `images` images, or, where one takes too much, of a part of its result points
// (conv_grad_input: of the channels of each group).
struct ConvColumns {
  int64_t images = 1;
  int64_t part = 0;   // points or channels
  bool whole = true;  // all images are in one chunk
  // Bytes of the columns, of a copy of dy in the order of their points, of sums over the chunks so far and of one chunk.
  int64_t columns_bytes = 0, dy_bytes = 0, sum_bytes = 0;
  int64_t product_bytes = 0;  // scratch of the products
  int64_t total() const { return columns_bytes + dy_bytes + 2 * sum_bytes + product_bytes; }
};

// element_bytes: of the operands; wide_bytes: of what they are summed up in. Throws Error where sizes overflow.
ConvColumns conv_columns(const ConvShape& shape, OpKind op, int64_t element_bytes, int64_t wide_bytes);

// Scratch that an algorithm of the convolution library may use.
int64_t cuda_conv_library_workspace(const ConvShape& shape, int64_t element_bytes);
// Bytes that the CUDA kernel needs, whichever way it takes.
int64_t cuda_conv_workspace(const ConvShape& shape, OpKind op, int64_t element_bytes, int64_t wide_bytes);

}  // namespace zeroplan
