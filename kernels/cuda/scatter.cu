// scatter: rows of updates written into, added to or otherwise joined with rows of the data, in the order of the indices.
#include "kernels/cuda/index_runs.cuh"
#include "kernels/cuda/strided_copy.h"

namespace zeroplan::kernels_cuda {

namespace {

struct WriteRows {
  template <typename T>
  using Type = T;
  template <typename V>
  static __device__ V join(V, V update) {
    return update;
  }
};
struct MultiplyRows {
  template <typename T>
  using Type = typename JoinType<T>::type;
  template <typename V>
  static __device__ V join(V old, V update) {
    return old * update;
  }
};
// A nan wins, the first of several.
struct LargestRows {
  template <typename T>
  using Type = WideOf<T>;
  template <typename V>
  static __device__ V join(V old, V update) {
    return (update > old || update != update) && old == old ? update : old;
  }
};
struct SmallestRows {
  template <typename T>
  using Type = WideOf<T>;
  template <typename V>
  static __device__ V join(V old, V update) {
    return (update < old || update != update) && old == old ? update : old;
  }
};

// data, y [batch, rows, inner], indices [batch, count], updates [batch, count, inner]; all contiguous.
RowJoin join_of(const KernelArgs& args) {
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  const int axis = indices.rank - 1;
  int64_t batch = 1, inner = 1;
  for (int i = 0; i < axis; ++i) batch *= data.dims[i];
  for (int i = axis + 1; i < data.rank; ++i) inner *= data.dims[i];
  return {sort_indices(args, indices, batch, data.dims[axis]), 1, data.dims[axis], indices.dims[axis], inner};
}

template <typename Op, typename T>
void run(const KernelArgs& args, const RowJoin& join, T) {
  launch_join<Op>(args, join, args.inputs[2].as<T>(), args.outputs[0].as<T>());
}

template <typename Op>
void run_numbers(const KernelArgs& args, const RowJoin& join) {
  const DType dtype = args.inputs[0].dtype;
  if (dtype == DType::i32) return run<Op>(args, join, int32_t{});
  if (dtype == DType::i64) return run<Op>(args, join, int64_t{});
  visit_floating(dtype, [&](auto zero) { run<Op>(args, join, zero); });
}

}  // namespace

void scatter_kernel(const KernelArgs& args) {
  if (args.outputs[0].elements() == 0) return;
  if (args.inputs[0].data != args.outputs[0].data) copy_strided(args, args.inputs[0], args.outputs[0]);
  const RowJoin join = join_of(args);
  const std::string& reduction = args.attributes->get_string(Attr::reduction);
  if (reduction == "add") return run_numbers<AddRows>(args, join);
  if (reduction == "mul") return run_numbers<MultiplyRows>(args, join);
  if (reduction == "max") return run_numbers<LargestRows>(args, join);
  if (reduction == "min") return run_numbers<SmallestRows>(args, join);
  visit_width(args.inputs[0].dtype, [&](auto zero) { run<WriteRows>(args, join, zero); });
}

}  // namespace zeroplan::kernels_cuda
