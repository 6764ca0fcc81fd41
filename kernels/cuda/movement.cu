// copy, record_output, concat, slice_grad, fill.
#include <cstring>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/cuda/strided_copy.h"

namespace zeroplan::kernels_cuda {

namespace {

std::byte* element_address(const TensorView& view, int64_t offset) {
  return static_cast<std::byte*>(view.data) + offset * dtype_bytes(view.dtype);
}

// to [n, 128 bits], then `rest` elements of W.
template <typename W>
__global__ void fill_elements(int64_t n, int rest, W value, W* to) {
  Pack<W> pack;
  for (W& item : pack.item) item = value;
  for_items(n, [&](int64_t i) { reinterpret_cast<Pack<W>*>(to)[i] = pack; });
  for_items(rest, [&](int64_t i) { to[n * Pack<W>::kItems + i] = value; });
}

// y contiguous; `bits` is an element.
void fill_with(const KernelArgs& args, const TensorView& y, uint64_t bits) {
  const int64_t count = y.elements();
  if (count == 0) return;
  visit_width(y.dtype, [&](auto zero) {
    using W = decltype(zero);
    const auto value = static_cast<W>(bits);
    W* to = y.as<W>();
    // Elements before the first border of 128 bits have a launch of their own; tensors of a plan start at one.
    const int64_t past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kPackBytes / sizeof(W));
    const int64_t before = std::min(past == 0 ? 0 : Pack<W>::kItems - past, count), packs = (count - before) / Pack<W>::kItems;
    const int rest = static_cast<int>(count - before - packs * Pack<W>::kItems);
    if (before > 0) launch(args, 1, kBlock, 0, fill_elements<W>, int64_t{0}, static_cast<int>(before), value, to);
    if (packs + rest > 0) launch(args, blocks_for(args, packs), kBlock, 0, fill_elements<W>, packs, rest, value, to + before);
  });
}

// The bytes of `value` as an element.
uint64_t element_bits(DType dtype, double value) {
  if (dtype == DType::f16) return Float16(value).bits;
  if (dtype == DType::bf16) return BFloat16(value).bits;
  uint64_t bits = 0;
  visit_dtype(dtype, [&](auto zero) {
    const auto element = converted<decltype(zero)>(value);
    std::memcpy(&bits, &element, sizeof element);
  });
  return bits;
}

}  // namespace

void copy_kernel(const KernelArgs& args) { copy_strided(args, args.inputs[0], args.outputs[0]); }
void record_output_kernel(const KernelArgs& args) { copy_strided(args, args.inputs[0], args.outputs[0]); }

void concat_kernel(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  int64_t axis = args.attributes->get_int(Attr::axis);
  if (axis < 0) axis += y.rank;
  int64_t start = 0;
  for (int i = 0; i < args.input_count; ++i) {
    const TensorView& x = args.inputs[i];
    TensorView part = y;
    part.data = element_address(y, start * y.strides[axis]);
    part.dims[axis] = x.dims[axis];
    copy_strided(args, x, part);
    start += x.dims[axis];
  }
}

void slice_grad_kernel(const KernelArgs& args) {
  const std::vector<int64_t>& starts = args.attributes->get_ints(Attr::starts);
  const std::vector<int64_t>& steps = args.attributes->get_ints(Attr::steps);
  const TensorView &dy = args.inputs[0], &dx = args.outputs[0];
  fill_with(args, dx, 0);
  if (dy.elements() == 0) return;
  TensorView part = dx;
  int64_t offset = 0;
  for (int i = 0; i < dx.rank; ++i) {
    offset += starts[i] * dx.strides[i];
    part.strides[i] = dx.strides[i] * steps[i];
    part.dims[i] = dy.dims[i];
  }
  part.data = element_address(dx, offset);
  copy_strided(args, dy, part);
}

void fill_kernel(const KernelArgs& args) {
  fill_with(args, args.outputs[0], element_bits(args.outputs[0].dtype, args.attributes->get_double(Attr::value)));
}

}  // namespace zeroplan::kernels_cuda
