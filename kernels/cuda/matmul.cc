// matmul: batches of products by cuBLASLt, along the longest batch axis at once.
#include <algorithm>

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

// The largest power of two up to 256 that divides the address of every matrix of the batch.
int alignment_of(const void* address, const ProductMatrix& matrix, DType dtype) {
  const auto low = reinterpret_cast<uintptr_t>(address) | static_cast<uintptr_t>(matrix.batch_stride * dtype_bytes(dtype)) | 256;
  return static_cast<int>(low & (~low + 1));
}

ProductProblem problem_of(const MatmulShape<Batch>& s, int axis, const KernelArgs& args) {
  ProductProblem p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.batch = s.batch.dims[axis];
  p.a = {s.a.transposed, s.a.ld, s.batch.strides[0][axis]};
  p.b = {s.b.transposed, s.b.ld, s.batch.strides[1][axis]};
  p.y = {false, s.ldc, s.batch.strides[2][axis]};
  p.dtype = args.inputs[0].dtype;
  p.y_dtype = args.outputs[0].dtype;
  p.workspace_bytes = args.workspace_bytes;
  return p;
}

void multiply(const KernelArgs& args, ProductProblem& problem, const void* a, const void* b, void* y) {
  problem.a.alignment = alignment_of(a, problem.a, problem.dtype);
  problem.b.alignment = alignment_of(b, problem.b, problem.dtype);
  problem.y.alignment = alignment_of(y, problem.y, problem.y_dtype);
  context_of(args).products().run(problem, a, b, y, args.workspace, context_of(args).stream());
}

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const TensorView a = as_matrix(first, true), b = as_matrix(second, false),
                   y = as_result(args.outputs[0], first.rank == 1, second.rank == 1);
  if (y.elements() == 0) return;
  if (a.dims[a.rank - 1] == 0) {
    const auto bytes = static_cast<size_t>(y.elements() * dtype_bytes(y.dtype));
    return check_cuda(cudaMemsetAsync(y.data, 0, bytes, context_of(args).stream()), "cudaMemsetAsync");
  }
  const MatmulShape<Batch> s = matmul_shape<Batch>(a, b, y, make_space<3>);
  const int axis = longest_axis(s.batch);
  Batch others = s.batch;
  others.dims[axis] = 1;
  others.recount();
  for (int64_t start = 0; start < s.batch.dims[axis]; start += kMostBatches) {
    ProductProblem problem = problem_of(s, axis, args);
    problem.batch = std::min(problem.batch - start, kMostBatches);
    for (int64_t i = 0; i < others.count; ++i) {
      int64_t at[3];
      others.offsets(i, 3, at);
      for (int operand = 0; operand < 3; ++operand) at[operand] += start * s.batch.strides[operand][axis];
      multiply(args, problem, element_address(a, at[0]), element_address(b, at[1]), element_address(y, at[2]));
    }
  }
}

}  // namespace zeroplan::kernels_cuda
