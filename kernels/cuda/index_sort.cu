// A stable radix sort, from the lowest digit to the highest: count the digits of each tile, sum the counts up, place the entries.
#include "kernels/cuda/index_sort.h"

#include "graph/ops/cuda_index_sort_sizes.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_indices.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kDigits = static_cast<int>(kSortDigits), kTile = static_cast<int>(kSortTile);
constexpr int kWarps = kBlock / kWarp, kWarpEntries = kTile / kWarps;
constexpr int kNoDigit = kDigits;  // of lanes without an entry
constexpr unsigned kAll = 0xffffffffu;
static_assert(kDigits == kBlock);

__global__ void list_rows(int64_t n, int64_t count, int64_t end, const RowIndices indices, int64_t* rows, int64_t* positions) {
  for_items(n, [&](int64_t k) {
    const int64_t row = indices.row(k);
    rows[k] = row < 0 ? end : k / count * indices.rows + row;
    positions[k] = k;
  });
}

__device__ int digit_of(const int64_t* rows, int64_t entries, int64_t k, int shift) {
  return k < entries ? static_cast<int>(rows[k] >> shift & (kDigits - 1)) : kNoDigit;
}

// The first entry of this thread's warp, of those that the warp walks through 32 at a time.
__device__ int64_t first_of_warp() { return int64_t{blockIdx.x} * kTile + static_cast<int>(threadIdx.x) / kWarp * kWarpEntries; }

// counts [warps, digits] of the block's entries.
__device__ void count_digits(const int64_t* rows, int64_t entries, int shift, int (*counts)[kDigits]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int w = 0; w < kWarps; ++w) counts[w][threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < kWarpEntries; i += kWarp) {
    const int digit = digit_of(rows, entries, first_of_warp() + i + lane, shift);
    const unsigned same = __match_any_sync(kAll, digit);
    if (digit != kNoDigit && lane == __ffs(static_cast<int>(same)) - 1) counts[warp][digit] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
}

// totals [tiles, digits]
__global__ void count_tiles(int64_t entries, int shift, const int64_t* rows, int64_t* totals) {
  __shared__ int counts[kWarps][kDigits];
  count_digits(rows, entries, shift, counts);
  int64_t total = 0;
  for (int w = 0; w < kWarps; ++w) total += counts[w][threadIdx.x];
  totals[int64_t{blockIdx.x} * kDigits + threadIdx.x] = total;
}

// totals [tiles, digits] become the places of the first entries: after all of lower digits, and those of the same digit in tiles before.
__global__ void sum_totals(int64_t tiles, int64_t* totals) {
  __shared__ int64_t sums[kDigits];
  const int digit = static_cast<int>(threadIdx.x);
  int64_t sum = 0;
  for (int64_t t = 0; t < tiles; ++t) sum += totals[t * kDigits + digit];
  sums[digit] = sum;
  __syncthreads();
  int64_t place = 0;
  for (int d = 0; d < digit; ++d) place += sums[d];
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t here = totals[t * kDigits + digit];
    totals[t * kDigits + digit] = place;
    place += here;
  }
}

// places [tiles, digits]
__global__ void place_entries(int64_t entries, int shift, const int64_t* places, const int64_t* rows, const int64_t* positions,
                              int64_t* to_rows, int64_t* to_positions) {
  __shared__ int counts[kWarps][kDigits];
  count_digits(rows, entries, shift, counts);
  int before = 0;
  for (int w = 0; w < kWarps; ++w) {
    const int here = counts[w][threadIdx.x];
    counts[w][threadIdx.x] = before;
    before += here;
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int i = 0; i < kWarpEntries; i += kWarp) {
    const int64_t k = first_of_warp() + i + lane;
    const int digit = digit_of(rows, entries, k, shift);
    const unsigned same = __match_any_sync(kAll, digit);
    if (digit != kNoDigit) {
      const int64_t to = places[int64_t{blockIdx.x} * kDigits + digit] + counts[warp][digit] + __popc(same & ((1u << lane) - 1));
      to_rows[to] = rows[k];
      to_positions[to] = positions[k];
    }
    __syncwarp();
    if (digit != kNoDigit && lane == __ffs(static_cast<int>(same)) - 1) counts[warp][digit] += __popc(same);
    __syncwarp();
  }
}

}  // namespace

SortedIndices sort_indices(const KernelArgs& args, const TensorView& indices, int64_t batch, int64_t table_rows) {
  const IndexSortSizes sizes = {indices.elements(), batch * table_rows};
  const int64_t entries = sizes.entries;
  if (entries == 0) return {nullptr, nullptr, 0, sizes.rows};
  auto* memory = static_cast<std::byte*>(args.workspace);
  const auto list = [&](int i) { return reinterpret_cast<int64_t*>(memory + i * sizes.list_bytes()); };
  int64_t *rows = list(0), *positions = list(1), *to_rows = list(2), *to_positions = list(3), *totals = list(4);
  launch_over(args, entries, list_rows, entries / batch, sizes.rows, RowIndices(args, indices, table_rows), rows, positions);
  const auto tiles = static_cast<unsigned>(sizes.tiles());
  for (int pass = 0; pass < sizes.passes(); ++pass) {
    const int shift = pass * 8;
    launch(args, tiles, kBlock, 0, count_tiles, entries, shift, static_cast<const int64_t*>(rows), totals);
    launch(args, 1, kBlock, 0, sum_totals, sizes.tiles(), totals);
    launch(args, tiles, kBlock, 0, place_entries, entries, shift, static_cast<const int64_t*>(totals), static_cast<const int64_t*>(rows),
           static_cast<const int64_t*>(positions), to_rows, to_positions);
    std::swap(rows, to_rows);
    std::swap(positions, to_positions);
  }
  return {rows, positions, entries, sizes.rows};
}

}  // namespace zeroplan::kernels_cuda
