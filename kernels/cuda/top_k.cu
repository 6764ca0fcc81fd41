// top_k: sorts pieces of each line in shared memory, then merges lists of places in pairs. The order is total: of equal elements the first
// comes first.
#include "graph/ops/cuda_top_k_lists.h"
#include "kernels/cuda/along_axis.cuh"
#include "kernels/cuda/launch.cuh"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int kPiece = static_cast<int>(kTopKPiece);

struct Lines {
  AlongAxis axis;
  int64_t k;
  bool largest;
  DType dtype;
  const void* x;  // [outer, size, inner]
};

template <typename T>
struct Element {
  T value;
  int64_t place;  // along the axis; -1: none
};

template <typename T>
__device__ bool precedes(const Element<T>& a, const Element<T>& b, bool largest) {
  if (a.place < 0 || b.place < 0) return b.place < 0 && a.place >= 0;
  if (above(a.value, b.value)) return largest;
  if (above(b.value, a.value)) return !largest;
  return a.place < b.place;
}

template <typename T>
__device__ Element<T> element(const Lines& s, int64_t first, int64_t place) {
  return {load_as<T>(s.x, s.dtype, first + place * s.axis.inner), place};
}

// K. E. Batcher, "Sorting networks and their applications", 1968: the bitonic network, on segments of `width` elements side by side.
template <typename T>
__device__ void sort_segments(T* values, int* places, int width, bool largest) {
  for (int run = 2; run <= width; run *= 2) {
    for (int apart = run / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int pair = static_cast<int>(threadIdx.x); pair < kPiece / 2; pair += kBlock) {
        const int i = pair / apart * 2 * apart + pair % apart, k = i + apart;
        const Element<T> a = {values[i], places[i]}, b = {values[k], places[k]};
        const bool falls = (i % width & run) != 0;
        if (falls ? precedes(a, b, largest) : precedes(b, a, largest)) {
          values[i] = b.value, places[i] = static_cast<int>(b.place);
          values[k] = a.value, places[k] = static_cast<int>(a.place);
        }
      }
    }
  }
  __syncthreads();
}

// lists [lines, pieces, kept]: the best of each piece of `width` elements, as places. A block sorts kPiece / width pieces.
template <typename T>
__global__ void sort_pieces(const Lines s, int64_t pieces, int width, int64_t kept, int64_t* lists) {
  __shared__ T values[kPiece];
  __shared__ int places[kPiece];
  const int64_t all = s.axis.lines() * pieces, base = int64_t{blockIdx.x} * (kPiece / width);
  for (int i = static_cast<int>(threadIdx.x); i < kPiece; i += kBlock) {
    const int64_t segment = base + i / width, place = segment % pieces * width + i % width;
    const bool exists = segment < all && place < s.axis.size;
    values[i] = exists ? element<T>(s, s.axis.first(segment / pieces), place).value : T(0);
    places[i] = exists ? i % width : -1;
  }
  sort_segments(values, places, width, s.largest);
  for (int i = static_cast<int>(threadIdx.x); i < kPiece; i += kBlock) {
    const int64_t segment = base + i / width;
    if (places[i] >= 0 && i % width < kept) lists[segment * kept + i % width] = segment % pieces * width + places[i];
  }
}

// A line's lists, each of a span of its elements, and cut to `kept` places.
struct Lists {
  int64_t count, span, kept;
  __device__ int64_t length(int64_t list, int64_t size) const {
    const int64_t left = size - list * span, most = left < span ? left : span;
    return most < kept ? most : kept;
  }
};

// from [lines, lists, kept] to [lines, lists / 2, kept]: each element goes to its own place plus the number of those of the other list that
// precede it.
template <typename T>
__global__ void merge_pairs(int64_t n, const Lines s, const Lists in, const Lists out, const int64_t* from, int64_t* to) {
  for_items(n, [&](int64_t i) {
    const int64_t line = i / (in.count * in.kept), list = i / in.kept % in.count, own = i % in.kept, other = list ^ 1;
    if (own >= in.length(list, s.axis.size)) return;
    const int64_t first = s.axis.first(line);
    const Element<T> x = element<T>(s, first, from[i]);
    const int64_t* with = from + (line * in.count + other) * in.kept;
    int64_t low = 0, high = other < in.count ? in.length(other, s.axis.size) : 0;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (precedes(element<T>(s, first, with[middle]), x, s.largest))
        low = middle + 1;
      else
        high = middle;
    }
    if (own + low < out.kept) to[(line * out.count + list / 2) * out.kept + own + low] = x.place;
  });
}

// list [lines, k] → values, indices [outer, k, inner]
template <typename W>
__global__ void take_listed(int64_t n, const AlongAxis a, int64_t k, const int64_t* list, const W* x, W* values, int64_t* indices) {
  for_items(n, [&](int64_t i) {
    const int64_t line = i / (k * a.inner) * a.inner + i % a.inner, place = list[line * k + i / a.inner % k];
    values[i] = x[a.first(line) + place * a.inner];
    indices[i] = place;
  });
}

// Returns the buffer that the lines' lists of k places are in.
template <typename T>
const int64_t* list_best(const KernelArgs& args, const Lines& s, const TopKLists& sizes) {
  const int64_t lines = s.axis.lines();
  auto* lists = static_cast<int64_t*>(args.workspace);
  auto* spare = reinterpret_cast<int64_t*>(static_cast<std::byte*>(args.workspace) + sizes.bytes(lines));
  const int width = static_cast<int>(std::min<uint64_t>(kPiece, std::bit_ceil(static_cast<uint64_t>(s.axis.size))));
  Lists in = {sizes.pieces(), width, std::min<int64_t>(s.k, kPiece)};
  const int64_t segments = lines * in.count, per_block = kPiece / width;
  launch(args, static_cast<unsigned>((segments + per_block - 1) / per_block), kBlock, 0, sort_pieces<T>, s, in.count, width, in.kept,
         lists);
  while (in.count > 1) {
    const Lists out = {(in.count + 1) / 2, in.span * 2, std::min(s.k, in.kept * 2)};
    launch_over(args, lines * in.count * in.kept, merge_pairs<T>, s, in, out, static_cast<const int64_t*>(lists), spare);
    std::swap(lists, spare);
    in = out;
  }
  return lists;
}

}  // namespace

void top_k_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &values = args.outputs[0], &indices = args.outputs[1];
  const Attributes& attributes = *args.attributes;
  const Lines s = {AlongAxis(x, attributes.get_int(Attr::axis)), attributes.get_int(Attr::k), attributes.get_int(Attr::largest, 1) != 0,
                   x.dtype, x.data};
  if (values.elements() == 0) return;
  const int64_t* list = nullptr;
  visit_ordered(x.dtype, [&](auto zero) { list = list_best<decltype(zero)>(args, s, {s.axis.size, s.k}); });
  visit_width(x.dtype, [&](auto zero) {
    using W = decltype(zero);
    launch_over(args, values.elements(), take_listed<W>, s.axis, s.k, list, x.as<W>(), values.as<W>(), indices.as<int64_t>());
  });
}

}  // namespace zeroplan::kernels_cuda
