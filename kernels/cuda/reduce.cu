// reduce_sum, reduce_mean, reduce_max, reduce_prod over any axes of a strided operand. Results are cut into chunks that depend on the shape
// alone, and each is a fixed tree over the threads of a block.
#include "graph/ops/cuda_reduce_chunks.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/reduce_ops.cuh"
#include "kernels/cuda/space.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kGroup = 8;  // elements joined in the type of the operand before the result moves on in its own
static_assert(kReduceThreads == kBlock);

struct Reduction {
  Space<1> kept, reduced;  // axes of x that stay, and those that are reduced
  int64_t chunk;           // elements of `reduced` per block
  int lanes;               // threads per result
  bool across;             // neighbouring threads work on neighbouring results
  bool side_by_side;       // the elements of a result are
  bool packed;             // and start at borders of 128 bits
  bool wide;               // results of halves are float
  double divisor;
};

// Elements [begin, end) that lie side by side, as one thread's share.
template <typename Op, typename T>
__device__ TotalOf<Op, T> join_packs(const T* x, int64_t begin, int64_t end, int lane, int lanes, bool packed) {
  constexpr int kItems = Pack<T>::kItems;
  auto total = Op::template start<TotalOf<Op, T>>();
#pragma unroll 4
  for (int64_t i = begin + lane * kItems; i < end; i += lanes * kItems) {
    auto part = Op::template start<PartOf<Op, T>>();
    if (packed && i + kItems <= end) {
      const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(x + i);
      for (const T& item : pack.item) part = Op::join(part, static_cast<PartOf<Op, T>>(widen(item)));
    } else {
      for (int64_t k = i; k < i + kItems && k < end; ++k) part = Op::join(part, static_cast<PartOf<Op, T>>(widen(x[k])));
    }
    total = Op::join(total, static_cast<TotalOf<Op, T>>(part));
  }
  return total;
}

// The same for elements `stride` apart.
template <typename Op, typename T>
__device__ TotalOf<Op, T> join_strided(const T* x, int64_t stride, int64_t begin, int64_t end, int lane, int lanes) {
  auto total = Op::template start<TotalOf<Op, T>>();
  for (int64_t i = begin + lane; i < end; i += int64_t{kGroup} * lanes) {
    auto part = Op::template start<PartOf<Op, T>>();
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      const int64_t at = i + int64_t{k} * lanes;
      if (at < end) part = Op::join(part, static_cast<PartOf<Op, T>>(widen(x[at * stride])));
    }
    total = Op::join(total, static_cast<TotalOf<Op, T>>(part));
  }
  return total;
}

// The same for elements anywhere.
template <typename Op, typename T>
__device__ TotalOf<Op, T> join_anywhere(const T* x, const Space<1>& space, int64_t begin, int64_t end, int lane, int lanes) {
  auto total = Op::template start<TotalOf<Op, T>>();
#pragma unroll 1
  for (int64_t i = begin + lane; i < end; i += lanes) total = Op::join(total, static_cast<TotalOf<Op, T>>(widen(x[space.offset(i)])));
  return total;
}

// Joins the totals of a result's threads, lane 0 to `lanes`, which stand `apart` threads apart; lane 0 gets the result.
template <typename Op, typename Total>
__device__ Total join_lanes(Total total, int lane, int lanes, int apart) {
  __shared__ Total totals[kBlock];
  const int thread = static_cast<int>(threadIdx.x);
  totals[thread] = total;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) totals[thread] = total = Op::join(total, totals[thread + half * apart]);
  }
  return total;
}

// y [kept] of T, or (r.wide) of its wide type.
template <typename Op, typename T>
__device__ void write_result(void* y, int64_t kept, TotalOf<Op, T> total, double divisor, bool wide) {
  if (!std::is_same_v<T, WideOf<T>> && wide)
    static_cast<WideOf<T>*>(y)[kept] = Op::template finish<WideOf<T>>(total, divisor);
  else
    static_cast<T*>(y)[kept] = Op::template finish<T>(total, divisor);
}

// x strided, y [kept]; with several chunks `partial` [chunks, kept] instead. A block takes one chunk of kBlock / lanes results.
template <typename Op, typename T>
__global__ void reduce_chunk(const __grid_constant__ Reduction r, const T* x, TotalOf<Op, T>* partial, void* y) {
  const int thread = static_cast<int>(threadIdx.x), results = kBlock / r.lanes;
  const int lane = r.across ? thread / results : thread % r.lanes, result = r.across ? thread % results : thread / r.lanes;
  const int64_t kept = int64_t{blockIdx.x} * results + result;
  const int64_t begin = blockIdx.y * r.chunk, end = begin + r.chunk < r.reduced.count ? begin + r.chunk : r.reduced.count;
  auto total = Op::template start<TotalOf<Op, T>>();
  if (kept < r.kept.count) {
    const T* from = x + r.kept.offset(kept);
    if (r.side_by_side)
      total = join_packs<Op>(from, begin, end, lane, r.lanes, r.packed);
    else if (r.reduced.rank == 1)
      total = join_strided<Op>(from, r.reduced.strides[0][0], begin, end, lane, r.lanes);
    else
      total = join_anywhere<Op>(from, r.reduced, begin, end, lane, r.lanes);
  }
  total = join_lanes<Op>(total, lane, r.lanes, r.across ? results : 1);
  if (lane > 0 || kept >= r.kept.count) return;
  if (partial != nullptr)
    partial[blockIdx.y * r.kept.count + kept] = total;
  else
    write_result<Op, T>(y, kept, total, r.divisor, r.wide);
}

// partial [chunks, kept], y [kept]. A block takes kBlock / lanes neighbouring results.
template <typename Op, typename T>
__global__ void join_chunks(int64_t count, int64_t chunks, int lanes, double divisor, bool wide, const TotalOf<Op, T>* partial, void* y) {
  const int results = kBlock / lanes, lane = static_cast<int>(threadIdx.x) / results;
  const int64_t kept = int64_t{blockIdx.x} * results + threadIdx.x % results;
  auto total = Op::template start<TotalOf<Op, T>>();
  if (kept < count)
    for (int64_t c = lane; c < chunks; c += lanes) total = Op::join(total, partial[c * count + kept]);
  total = join_lanes<Op>(total, lane, lanes, results);
  if (lane == 0 && kept < count) write_result<Op, T>(y, kept, total, divisor, wide);
}

TensorView pick_axes(const TensorView& x, const std::vector<int64_t>& axes, bool wanted) {
  TensorView v = x;
  v.rank = 0;
  for (int i = 0; i < x.rank; ++i) {
    if ((std::find(axes.begin(), axes.end(), i) != axes.end()) != wanted) continue;
    v.dims[v.rank] = x.dims[i];
    v.strides[v.rank++] = x.strides[i];
  }
  return v;
}

Space<1> space_of(const TensorView& view) {
  const TensorView* views[] = {&view};
  return make_space<1>(view, views, 1);
}

// Do all results start at a border of 128 bits?
bool starts_aligned(const Space<1>& kept, const void* x, int64_t element) {
  bool result = aligned(x);
  for (int d = 0; d < kept.rank; ++d) result = result && kept.strides[0][d] * element % kPackBytes == 0;
  return result;
}

unsigned blocks_of(int64_t kept, int64_t lanes) {
  const int64_t results = kBlock / lanes;
  return static_cast<unsigned>((kept + results - 1) / results);
}

template <typename Op, typename T>
void reduce(const KernelArgs& args, Reduction r) {
  const T* x = args.inputs[0].as<T>();
  void* y = args.outputs[0].data;
  const ReduceChunks c = reduce_chunks(r.kept.count, r.reduced.count, r.across);
  r.chunk = c.chunk;
  r.lanes = static_cast<int>(c.lanes);
  r.packed = r.side_by_side && starts_aligned(r.kept, x, sizeof(T));
  auto* partial = c.chunks > 1 ? static_cast<TotalOf<Op, T>*>(args.workspace) : nullptr;
  const dim3 grid(blocks_of(r.kept.count, c.lanes), static_cast<unsigned>(c.chunks));
  launch(args, grid, kBlock, 0, reduce_chunk<Op, T>, r, x, partial, y);
  if (partial == nullptr) return;
  const int lanes = static_cast<int>(reduce_chunks(r.kept.count, c.chunks, true).lanes);
  launch(args, blocks_of(r.kept.count, lanes), kBlock, 0, join_chunks<Op, T>, r.kept.count, c.chunks, lanes, r.divisor, r.wide, partial, y);
}

template <typename Op>
void run_reduce(const KernelArgs& args, bool mean) {
  const TensorView& x = args.inputs[0];
  const std::vector<int64_t>& axes = args.attributes->get_ints(Attr::axes);
  Reduction r = {};
  r.kept = space_of(pick_axes(x, axes, false));
  r.reduced = space_of(pick_axes(x, axes, true));
  if (r.kept.count == 0) return;
  r.wide = args.outputs[0].dtype != x.dtype;
  r.divisor = mean ? static_cast<double>(r.reduced.count) : 1;
  r.side_by_side = r.reduced.rank == 1 && r.reduced.strides[0][0] == 1;
  r.across = r.kept.count > 1 && std::abs(r.kept.inner_stride(0)) < std::abs(r.reduced.inner_stride(0));
  switch (x.dtype) {
    case DType::i64: return reduce<Op, int64_t>(args, r);
    case DType::i32: return reduce<Op, int32_t>(args, r);
    default: visit_floating(x.dtype, [&](auto zero) { reduce<Op, decltype(zero)>(args, r); });
  }
}

}  // namespace

void reduce_sum_kernel(const KernelArgs& args) { run_reduce<SumOp>(args, false); }
void reduce_mean_kernel(const KernelArgs& args) { run_reduce<SumOp>(args, true); }
void reduce_max_kernel(const KernelArgs& args) { run_reduce<MaxOp>(args, false); }
void reduce_prod_kernel(const KernelArgs& args) { run_reduce<ProdOp>(args, false); }

}  // namespace zeroplan::kernels_cuda
