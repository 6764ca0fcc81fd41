// layer_norm_grad and rms_norm_grad; contiguous [R, C]. A block takes a chunk of rows one after the other and adds up their share of dgamma
// and dbeta, each thread that of its own columns; the chunks are folded in double. dy and x are read once from memory.
#include "graph/ops/cuda_workspace.h"
#include "kernels/cuda/rows.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int64_t kMostShared = 48 << 10;             // bytes that every launch may have
constexpr int kFoldColumns = kWarp, kFoldGroups = 8;  // threads of norm_grad_fold

template <typename T>
struct Backward {
  const T *dy, *x, *gamma;      // [R, C], [R, C], [C]
  const WideOf<T>*mean, *rstd;  // [R] or null, [R]
  T* dx;                        // [R, C], may be dy
  WideOf<T>* partial;           // [chunks, 2, C]
  int64_t chunk_rows;
  bool in_shared;  // sums of a chunk fit into the shared memory
};

// With x̂ = (x - mean)·rstd and g = dy·gamma: dx = rstd·(g - mean(g) - x̂·mean(g·x̂)); rms_norm has no mean(g). sums += dy·x̂, dy: [2, C].
template <typename T, bool kCentered>
__device__ void norm_grad_row(const Rows& rows, const Backward<T>& n, int64_t row, WideOf<T>* sums) {
  using W = WideOf<T>;
  const int64_t first = row * rows.columns;
  const W mean = kCentered ? n.mean[row] : W(0), rstd = n.rstd[row], count = static_cast<W>(rows.columns);
  Sums<W> own = {0, 0};
  for_columns<T>(rows, [&](auto at) {
    const auto dy = at.load(n.dy + first), x = at.load(n.x + first), gamma = at.load(n.gamma);
    for (int k = 0; k < at.kCount; ++k) {
      const W g = dy.at[k] * gamma.at[k], normal = (x.at[k] - mean) * rstd;
      own.a += g;
      own.b += g * normal;
      sums[at.first + k] += dy.at[k] * normal;
      if (kCentered) sums[rows.columns + at.first + k] += dy.at[k];
    }
  });
  own = fold_block(own);
  const W sum = kCentered ? own.a / count : W(0), dot = own.b / count;
  for_columns<T>(rows, [&](auto at) {
    auto dy = at.load(n.dy + first);
    const auto x = at.load(n.x + first), gamma = at.load(n.gamma);
    for (int k = 0; k < at.kCount; ++k) dy.at[k] = rstd * (dy.at[k] * gamma.at[k] - sum - (x.at[k] - mean) * rstd * dot);
    at.store(n.dx + first, dy);
  });
}

template <typename T, bool kCentered>
__global__ void norm_grad_chunk(Rows rows, Backward<T> n) {
  using W = WideOf<T>;
  ZP_DYNAMIC_SHARED(W, shared);
  W* partial = n.partial + int64_t{blockIdx.x} * 2 * rows.columns;
  W* sums = n.in_shared ? shared : partial;
  const auto for_own = [&](const auto& fn) {
    for_columns<T>(rows, [&](auto at) {
      for (int64_t i = at.first; i < at.first + at.kCount; ++i) fn(i), fn(rows.columns + i);
    });
  };
  for_own([&](int64_t i) { sums[i] = 0; });
  const int64_t begin = blockIdx.x * n.chunk_rows, end = begin + n.chunk_rows < rows.count ? begin + n.chunk_rows : rows.count;
  for (int64_t row = begin; row < end; ++row) norm_grad_row<T, kCentered>(rows, n, row, sums);
  if (n.in_shared) for_own([&](int64_t i) { partial[i] = sums[i]; });
}

// partial [chunks, 2, C] → dgamma, dbeta [C], the latter null for rms_norm. Block (kFoldColumns, kFoldGroups), grid (columns, 1 or 2).
template <typename T>
__global__ void norm_grad_fold(int64_t columns, int64_t chunks, const WideOf<T>* partial, T* dgamma, T* dbeta) {
  __shared__ double groups[kFoldGroups][kFoldColumns];
  const int64_t column = int64_t{blockIdx.x} * kFoldColumns + threadIdx.x, which = blockIdx.y;
  double sum = 0;
  for (int64_t chunk = threadIdx.y; column < columns && chunk < chunks; chunk += kFoldGroups)
    sum += static_cast<double>(partial[(chunk * 2 + which) * columns + column]);
  groups[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int group = 1; group < kFoldGroups; ++group) sum += groups[group][threadIdx.x];
  (which == 0 ? dgamma : dbeta)[column] = narrow<T>(sum);
}

template <typename T, bool kCentered>
void run_norm_grad(const KernelArgs& args) {
  using W = WideOf<T>;
  const TensorView &dy = args.inputs[0], &dx = args.outputs[0], &dgamma = args.outputs[1];
  Backward<T> n = {dy.as<T>(),
                   args.inputs[1].as<T>(),
                   args.inputs[2].as<T>(),
                   kCentered ? args.inputs[3].as<W>() : nullptr,
                   args.inputs[kCentered ? 4 : 3].as<W>(),
                   dx.as<T>(),
                   static_cast<W*>(args.workspace)};
  const Rows rows = rows_of(dy, {n.dy, n.x, n.gamma, n.dx});
  const int64_t chunks = norm_grad_chunks(rows.count), sums = 2 * rows.columns * static_cast<int64_t>(sizeof(W));
  if (rows.columns == 0) return;
  n.chunk_rows = norm_grad_chunk_rows(rows.count);
  n.in_shared = sums <= kMostShared;
  if (chunks > 0)
    launch(args, static_cast<unsigned>(chunks), row_threads(rows, sizeof(T)), n.in_shared ? static_cast<size_t>(sums) : 0,
           norm_grad_chunk<T, kCentered>, rows, n);
  const dim3 grid(static_cast<unsigned>((rows.columns + kFoldColumns - 1) / kFoldColumns), kCentered ? 2 : 1);
  launch(args, grid, dim3(kFoldColumns, kFoldGroups), 0, norm_grad_fold<T>, rows.columns, chunks, n.partial, dgamma.as<T>(),
         kCentered ? args.outputs[2].as<T>() : nullptr);
}

}  // namespace

// dy, x, gamma, mean, rstd → dx, dgamma, dbeta
void layer_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_norm_grad<decltype(zero), true>(args); });
}

// dy, x, gamma, rstd → dx, dgamma
void rms_norm_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_norm_grad<decltype(zero), false>(args); });
}

}  // namespace zeroplan::kernels_cuda
