// Copies between strided views: along rows in pieces of up to 128 bits, transposes through shared memory, anything else element by element.
#include "kernels/cuda/strided_copy.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/space.cuh"
#include "kernels/cuda/storage.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int64_t kMostBytes = 16;        // of a piece
constexpr int64_t kFewest = 16;           // rows and columns from which on a transpose goes tile by tile
constexpr int64_t kMostBlocks = 1 << 20;  // of a grid of tiles, which the blocks walk through

// from, to: at the offsets of `space`, operands 0 and 1.
template <typename W>
__global__ void copy_elements(int64_t n, const Space<2> space, const W* from, W* to) {
  for_items(n, [&](int64_t i) {
    int64_t at[2];
    space.offsets(i, 2, at);
    to[at[1]] = from[at[0]];
  });
}

// Tiles are as wide as 128 bytes, or 64 elements; one more column, or four bytes, keep a tile's column in different banks.
template <typename W>
inline constexpr int kTile = sizeof(W) < 4 ? 64 : 32;
template <typename W>
inline constexpr int kTilePitch = kTile<W> + (sizeof(W) < 4 ? 4 / static_cast<int>(sizeof(W)) : 1);

struct Transpose {
  Space<2> outer;  // the other axes
  int64_t rows, columns, from_pitch, to_pitch;
  int64_t row_tiles, column_tiles;
};

// to[r · to_pitch + c] = from[c · from_pitch + r], at each offset of `outer`. A block per tile of rows × columns.
template <typename W>
__global__ void transpose_tiles(int64_t tiles, const Transpose t, const W* from, W* to) {
  constexpr int kWidth = kTile<W>, kHeight = kBlock / kWidth;
  __shared__ W tile[kWidth][kTilePitch<W>];  // [column, row]
  const int x = static_cast<int>(threadIdx.x) % kWidth, y = static_cast<int>(threadIdx.x) / kWidth;
  for (int64_t item = blockIdx.x; item < tiles; item += gridDim.x) {
    const int64_t place = item / t.column_tiles, r0 = place % t.row_tiles * kWidth, c0 = item % t.column_tiles * kWidth;
    int64_t at[2];
    t.outer.offsets(place / t.row_tiles, 2, at);
    for (int c = y; c < kWidth; c += kHeight)
      if (c0 + c < t.columns && r0 + x < t.rows) tile[c][x] = from[at[0] + (c0 + c) * t.from_pitch + r0 + x];
    __syncthreads();
    for (int r = y; r < kWidth; r += kHeight)
      if (r0 + r < t.rows && c0 + x < t.columns) to[at[1] + (r0 + r) * t.to_pitch + c0 + x] = tile[x][r];
    __syncthreads();
  }
}

// The axis that is contiguous in `from` where the last one is contiguous in `to`; -1 where there is none, or little to gain.
int transposed_axis(const Space<2>& s) {
  if (s.inner_stride(1) != 1 || s.inner_stride(0) == 1 || s.inner() < kFewest) return -1;
  for (int axis = 0; axis + 1 < s.rank; ++axis)
    if (s.strides[0][axis] == 1 && s.dims[axis] >= kFewest) return axis;
  return -1;
}

template <typename W>
void copy_transposed(const KernelArgs& args, const Space<2>& s, int axis, const W* from, W* to) {
  Transpose t = {s, s.dims[axis], s.inner(), s.inner_stride(0), s.strides[1][axis], 0, 0};
  t.row_tiles = (t.rows + kTile<W> - 1) / kTile<W>;
  t.column_tiles = (t.columns + kTile<W> - 1) / kTile<W>;
  t.outer.dims[axis] = t.outer.dims[s.rank - 1] = 1;
  t.outer.recount();
  const int64_t tiles = t.outer.count * t.row_tiles * t.column_tiles;
  launch(args, static_cast<unsigned>(std::min(tiles, kMostBlocks)), kBlock, 0, transpose_tiles<W>, tiles, t, from, to);
}

// Bytes of the largest pieces that rows, strides and addresses are made of.
int64_t piece_bytes(const Space<2>& s, const void* from, const void* to, int64_t element) {
  if (s.inner_stride(0) != 1 || s.inner_stride(1) != 1) return element;
  int64_t bytes = kMostBytes;
  const auto divides = [&](int64_t x) {
    while (x % bytes != 0) bytes /= 2;
  };
  divides(static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) % kMostBytes));
  divides(static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kMostBytes));
  divides(s.inner() * element);
  for (int o = 0; o < 2; ++o)
    for (int d = 0; d + 1 < s.rank; ++d) divides(s.strides[o][d] * element);
  return bytes;
}

template <typename W>
void copy_pieces(const KernelArgs& args, Space<2> s, int64_t element, const void* from, void* to) {
  const int64_t per_piece = static_cast<int64_t>(sizeof(W)) / element;
  s.dims[s.rank - 1] /= per_piece;
  for (int o = 0; o < 2; ++o)
    for (int d = 0; d + 1 < s.rank; ++d) s.strides[o][d] /= per_piece;
  s.recount();
  launch_over(args, s.count, copy_elements<W>, s, static_cast<const W*>(from), static_cast<W*>(to));
}

}  // namespace

void copy_strided(const KernelArgs& args, const TensorView& from, const TensorView& to) {
  const TensorView* views[] = {&from, &to};
  const Space<2> space = make_space<2>(to, views, 2);
  if (space.count == 0) return;
  const int axis = transposed_axis(space);
  const int64_t element = dtype_bytes(to.dtype);
  const int64_t piece = axis >= 0 ? element : piece_bytes(space, from.data, to.data, element);
  if (piece > 8) return copy_pieces<uint4>(args, space, element, from.data, to.data);
  visit_width(piece, [&](auto zero) {
    using W = decltype(zero);
    if (axis >= 0) return copy_transposed(args, space, axis, from.as<W>(), to.as<W>());
    copy_pieces<W>(args, space, element, from.data, to.data);
  });
}

}  // namespace zeroplan::kernels_cuda
