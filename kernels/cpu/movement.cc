// copy, concat, slice_grad, fill.
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"
#include "kernels/cpu/strided_copy.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

void* element_address(const TensorView& view, int64_t offset) {
  void* address = nullptr;
  visit_width(view.dtype, [&](auto zero) { address = static_cast<decltype(zero)*>(view.data) + offset; });
  return address;
}

// y contiguous.
template <typename T>
void fill_with(const TensorView& y, T value, int threads) {
  T* to = static_cast<T*>(y.data);
  parallel_ranges(threads, count_elements(y), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = value;
  });
}

}  // namespace

void copy_kernel(const KernelArgs& args) { copy_strided(args.inputs[0], args.outputs[0], args.threads); }
void record_output_kernel(const KernelArgs& args) { copy_strided(args.inputs[0], args.outputs[0], args.threads); }

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
    copy_strided(x, part, args.threads);
    start += x.dims[axis];
  }
}

void slice_grad_kernel(const KernelArgs& args) {
  const std::vector<int64_t>& starts = args.attributes->get_ints(Attr::starts);
  const std::vector<int64_t>& steps = args.attributes->get_ints(Attr::steps);
  const TensorView &dy = args.inputs[0], &dx = args.outputs[0];
  visit_width(dx.dtype, [&](auto zero) { fill_with(dx, zero, args.threads); });
  if (count_elements(dy) == 0) return;
  TensorView part = dx;
  int64_t offset = 0;
  for (int i = 0; i < dx.rank; ++i) {
    offset += starts[i] * dx.strides[i];
    part.strides[i] = dx.strides[i] * steps[i];
    part.dims[i] = dy.dims[i];
  }
  part.data = element_address(dx, offset);
  copy_strided(dy, part, args.threads);
}

void fill_kernel(const KernelArgs& args) {
  const double value = args.attributes->get_double(Attr::value);
  visit_stored(args.outputs[0].dtype, [&](auto zero) { fill_with(args.outputs[0], stored_as<decltype(zero)>(value), args.threads); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
