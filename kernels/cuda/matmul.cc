// matmul: batches of products by cuBLASLt, along the longest batch axis at once.
#include <algorithm>

#include "kernels/cuda/bias.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/space.cuh"
#include "kernels/scalar/matmul_shape.h"

namespace zeroplan::kernels_cuda {

namespace {

using Batch = Space<3>;  // of a, b and y

constexpr int64_t kMostBatches = 65535;  // of one call: the largest third dimension of a grid

int longest_axis(const Batch& batch) {
  int longest = 0;
  for (int d = 1; d < batch.rank; ++d)
    if (batch.dims[d] > batch.dims[longest]) longest = d;
  return longest;
}

void* element_address(const TensorView& view, int64_t offset) { return static_cast<char*>(view.data) + offset * dtype_bytes(view.dtype); }

// The largest power of two up to 256 that divides the address of every matrix of the operand.
int alignment_of(const void* data, DType dtype, const Batch& batch, int operand) {
  auto low = reinterpret_cast<uintptr_t>(data) | 256;
  for (int d = 0; d < batch.rank; ++d)
    if (batch.dims[d] > 1) low |= static_cast<uintptr_t>(batch.strides[operand][d] * dtype_bytes(dtype));
  return static_cast<int>(low & (~low + 1));
}

struct Summands {
  const void *bias, *added;
};

ProductProblem problem_of(const MatmulShape<Batch>& s, int axis, const KernelArgs& args, const Summands& more) {
  const DType dtype = args.inputs[0].dtype, y_dtype = args.outputs[0].dtype;
  ProductProblem p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.a = {s.a.transposed, s.a.ld, s.batch.strides[0][axis], alignment_of(args.inputs[0].data, dtype, s.batch, 0)};
  p.b = {s.b.transposed, s.b.ld, s.batch.strides[1][axis], alignment_of(args.inputs[1].data, dtype, s.batch, 1)};
  p.y = {false, s.ldc, s.batch.strides[2][axis], alignment_of(args.outputs[0].data, y_dtype, s.batch, 2)};
  p.dtype = dtype;
  p.y_dtype = y_dtype;
  p.bias = more.bias != nullptr && s.batch.dims[axis] <= kMostBatches;  // all calls have one answer to whether it is added
  p.added = more.added != nullptr;
  if (p.added) p.y.alignment = std::min(p.y.alignment, alignment_of(more.added, y_dtype, s.batch, 2));
  p.workspace_bytes = args.workspace_bytes;
  return p;
}

// Returns whether the bias has been added.
bool multiply(const KernelArgs& args, const TensorView& a, const TensorView& b, const TensorView& y, const Summands& more) {
  const MatmulShape<Batch> s = matmul_shape<Batch>(a, b, y, make_space<3>);
  const int axis = longest_axis(s.batch);
  ProductProblem problem = problem_of(s, axis, args, more);
  Batch others = s.batch;
  others.dims[axis] = 1;
  others.recount();
  bool biased = false;
  for (int64_t start = 0; start < s.batch.dims[axis]; start += kMostBatches) {
    problem.batch = std::min(s.batch.dims[axis] - start, kMostBatches);
    for (int64_t i = 0; i < others.count; ++i) {
      int64_t at[3];
      others.offsets(i, 3, at);
      for (int operand = 0; operand < 3; ++operand) at[operand] += start * s.batch.strides[operand][axis];
      TensorView added = y;
      added.data = const_cast<void*>(more.added);
      const ProductData data = {element_address(a, at[0]), element_address(b, at[1]), more.bias,
                                problem.added ? element_address(added, at[2]) : nullptr, element_address(y, at[2])};
      biased = context_of(args).products().run(problem, data, args.workspace, context_of(args).stream());
    }
  }
  return biased;
}

const void* optional_input(const KernelArgs& args, int i) { return i < args.input_count ? args.inputs[i].data : nullptr; }

}  // namespace

// a, b, bias (optional), added (optional) → y
void matmul_kernel(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const TensorView a = as_matrix(first, true), b = as_matrix(second, false),
                   y = as_result(args.outputs[0], first.rank == 1, second.rank == 1);
  const Summands more = {optional_input(args, 2), optional_input(args, 3)};
  const auto bytes = static_cast<size_t>(y.elements() * dtype_bytes(y.dtype));
  const cudaStream_t stream = context_of(args).stream();
  if (bytes == 0) return;
  bool biased = false;
  if (a.dims[a.rank - 1] > 0)
    biased = multiply(args, a, b, y, more);
  else if (more.added == nullptr)
    check_cuda(cudaMemsetAsync(y.data, 0, bytes, stream), "cudaMemsetAsync");
  else if (more.added != y.data)
    check_cuda(cudaMemcpyAsync(y.data, more.added, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  if (more.bias != nullptr && !biased) add_bias(args, args.outputs[0], more.bias);
}

}  // namespace zeroplan::kernels_cuda
