// matmul: batches of products by cuBLASLt, along the longest batch axis at once.
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/space.cuh"
#include "kernels/scalar/matmul_shape.h"

namespace zeroplan::kernels_cuda {

namespace {

using Batch = Space<3>;  // of a, b and y

int longest_axis(const Batch& batch) {
  int longest = 0;
  for (int d = 1; d < batch.rank; ++d)
    if (batch.dims[d] > batch.dims[longest]) longest = d;
  return longest;
}

const char* element_address(const TensorView& view, int64_t offset) {
  return static_cast<const char*>(view.data) + offset * dtype_bytes(view.dtype);
}

// The largest power of two up to 256 that divides the address.
int alignment_of(const void* address) {
  const auto low = reinterpret_cast<uintptr_t>(address) | 256;
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

}  // namespace

void matmul_kernel(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const TensorView a = as_matrix(first, true), b = as_matrix(second, false),
                   y = as_result(args.outputs[0], first.rank == 1, second.rank == 1);
  CudaContext& context = context_of(args);
  if (y.elements() == 0) return;
  if (a.dims[a.rank - 1] == 0) {
    const auto bytes = static_cast<size_t>(y.elements() * dtype_bytes(y.dtype));
    return check_cuda(cudaMemsetAsync(y.data, 0, bytes, context.stream()), "cudaMemsetAsync");
  }
  const MatmulShape<Batch> s = matmul_shape<Batch>(a, b, y, make_space<3>);
  const int axis = longest_axis(s.batch);
  ProductProblem problem = problem_of(s, axis, args);
  Batch others = s.batch;
  others.dims[axis] = 1;
  others.recount();
  for (int64_t i = 0; i < others.count; ++i) {
    int64_t at[3];
    others.offsets(i, 3, at);
    const char *from_a = element_address(a, at[0]), *from_b = element_address(b, at[1]);
    char* to = const_cast<char*>(element_address(y, at[2]));
    problem.a.alignment = alignment_of(from_a);
    problem.b.alignment = alignment_of(from_b);
    problem.y.alignment = alignment_of(to);
    context.products().run(problem, from_a, from_b, to, args.workspace, context.stream());
  }
}

}  // namespace zeroplan::kernels_cuda
