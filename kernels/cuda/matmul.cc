// matmul: batches of products by cuBLASLt, along the longest batch axis at once.
#include <algorithm>

#include "kernels/cuda/bias.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/product_lists.h"
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

// Of every matrix of the operand.
int alignment_of(const void* data, DType dtype, const Batch& batch, int operand) {
  auto addresses = reinterpret_cast<uintptr_t>(data);
  for (int d = 0; d < batch.rank; ++d)
    if (batch.dims[d] > 1) addresses |= static_cast<uintptr_t>(batch.strides[operand][d] * dtype_bytes(dtype));
  return product_alignment(addresses);
}

struct Operands {
  TensorView a, b, y;        // as batches of matrices
  const void *bias, *added;  // null: left out
  bool empty() const { return y.elements() == 0; }
  bool sums_nothing() const { return a.dims[a.rank - 1] == 0; }
};

Operands operands_of(const KernelArgs& args) {
  const TensorView &first = args.inputs[0], &second = args.inputs[1];
  const auto optional = [&](int i) -> const void* { return i < args.input_count ? args.inputs[i].data : nullptr; };
  return {as_matrix(first, true), as_matrix(second, false), as_result(args.outputs[0], first.rank == 1, second.rank == 1), optional(2),
          optional(3)};
}

ProductProblem problem_of(const MatmulShape<Batch>& s, int axis, const KernelArgs& args, const Operands& o) {
  const DType dtype = args.inputs[0].dtype, y_dtype = args.outputs[0].dtype;
  ProductProblem p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.a = {s.a.transposed, s.a.ld, s.batch.strides[0][axis], alignment_of(args.inputs[0].data, dtype, s.batch, 0)};
  p.b = {s.b.transposed, s.b.ld, s.batch.strides[1][axis], alignment_of(args.inputs[1].data, dtype, s.batch, 1)};
  p.y = {false, s.ldc, s.batch.strides[2][axis], alignment_of(args.outputs[0].data, y_dtype, s.batch, 2)};
  p.dtype = dtype;
  p.y_dtype = y_dtype;
  if (o.bias != nullptr && s.batch.dims[axis] <= kMostBatches)  // all calls have one answer to whether it is added
    p.bias_alignment = product_alignment(reinterpret_cast<uintptr_t>(o.bias));
  p.added = o.added != nullptr;
  if (p.added) p.y.alignment = std::min(p.y.alignment, alignment_of(o.added, y_dtype, s.batch, 2));
  p.workspace_bytes = args.workspace_bytes;
  return p;
}

// fn(problem, data) for each call of the library.
template <typename Fn>
void each_product(const KernelArgs& args, const Operands& o, const Fn& fn) {
  const MatmulShape<Batch> s = matmul_shape<Batch>(o.a, o.b, o.y, make_space<3>);
  const int axis = longest_axis(s.batch);
  ProductProblem problem = problem_of(s, axis, args, o);
  Batch others = s.batch;
  others.dims[axis] = 1;
  others.recount();
  for (int64_t start = 0; start < s.batch.dims[axis]; start += kMostBatches) {
    problem.batch = std::min(s.batch.dims[axis] - start, kMostBatches);
    for (int64_t i = 0; i < others.count; ++i) {
      int64_t at[3];
      others.offsets(i, 3, at);
      for (int operand = 0; operand < 3; ++operand) at[operand] += start * s.batch.strides[operand][axis];
      TensorView added = o.y;
      added.data = const_cast<void*>(o.added);
      fn(problem, ProductData{element_address(o.a, at[0]), element_address(o.b, at[1]), o.bias,
                              problem.added ? element_address(added, at[2]) : nullptr, element_address(o.y, at[2])});
    }
  }
}

}  // namespace

// a, b, bias (optional), added (optional) → y
void matmul_kernel(const KernelArgs& args) {
  const Operands o = operands_of(args);
  if (o.empty()) return;
  const auto bytes = static_cast<size_t>(o.y.elements() * dtype_bytes(o.y.dtype));
  const cudaStream_t stream = context_of(args).stream();
  bool biased = false;
  if (!o.sums_nothing())
    each_product(args, o, [&](const ProductProblem& problem, const ProductData& data) {
      biased = context_of(args).products().run(problem, data, args.workspace, stream);
    });
  else if (o.added == nullptr)
    check_cuda(cudaMemsetAsync(o.y.data, 0, bytes, stream), "cudaMemsetAsync");
  else if (o.added != o.y.data)
    check_cuda(cudaMemcpyAsync(o.y.data, o.added, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  if (o.bias != nullptr && !biased) add_bias(args, args.outputs[0], o.bias);
}

void list_matmul_products(const KernelArgs& args, const ProductTaker& take) {
  const Operands o = operands_of(args);
  if (!o.empty() && !o.sums_nothing()) each_product(args, o, [&](const ProductProblem& problem, const ProductData&) { take(problem); });
}

}  // namespace zeroplan::kernels_cuda
