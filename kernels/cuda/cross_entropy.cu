// cross_entropy over logits [R, C] and labels [R]; the softmax itself is never stored, and the gradient is one pass over the logits.
#include "graph/ops/workspace.h"
#include "kernels/cuda/softmax.cuh"

namespace zeroplan::kernels_cuda {

namespace {

struct Labels {
  const void* data;  // [R]
  DType dtype;
  bool ignoring;
  int64_t ignored, classes;
  KernelFault* fault;
  int place;

  // -1: the row does not count.
  __device__ int64_t at(int64_t row) const {
    const int64_t label = load_as<int64_t>(data, dtype, row);
    if (ignoring && label == ignored) return -1;
    if (label >= 0 && label < classes) return label;
    if (threadIdx.x == 0) report_fault(fault, {KernelFault::label_outside_classes, place, label, row, classes});
    return -1;
  }
};

Labels labels_of(const KernelArgs& args, const TensorView& view, int64_t classes) {
  return {view.data,
          view.dtype,
          args.attributes->has(Attr::ignore_index),
          args.attributes->get_int(Attr::ignore_index, 0),
          classes,
          context_of(args).fault(),
          args.place};
}

// logits [R, C]; lse [R]; losses [R]
template <typename T>
__global__ void row_losses(Rows rows, const T* logits, Labels labels, WideOf<T>* lse, double* losses) {
  for_rows(rows, [&](int64_t row) {
    const T* x = logits + row * rows.columns;
    const auto all = row_softmax_sum(rows, x);
    if (threadIdx.x != 0) return;
    // All -∞: -∞ - -∞ is nan.
    const double value = all.sum == 0 ? NAN : static_cast<double>(all.largest) + logarithm(static_cast<double>(all.sum));
    const int64_t label = labels.at(row);
    lse[row] = static_cast<WideOf<T>>(value);
    losses[row] = label < 0 ? 0 : value - static_cast<double>(widen(x[label]));
  });
}

// losses [R]; sum and weight: scalars. One block; each thread its rows in order, then fold_block.
template <typename W>
__global__ void fold_losses(int64_t rows, const double* losses, Labels labels, W* sum, W* weight) {
  Sums<double> own = {0, 0};
  for (int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    const int64_t label = load_as<int64_t>(labels.data, labels.dtype, row);
    if (labels.ignoring && label == labels.ignored) continue;
    own = own + Sums<double>{losses[row], 1};
  }
  own = fold_block(own);
  if (threadIdx.x != 0) return;
  *sum = static_cast<W>(own.a);
  *weight = static_cast<W>(own.b);
}

// d = seed · (softmax - one-hot). seed: scalar; logits, d [R, C], d may be logits; lse [R]
template <typename T>
__global__ void row_gradients(Rows rows, const WideOf<T>* seed, const T* logits, Labels labels, const WideOf<T>* lse, T* d) {
  using W = WideOf<T>;
  const W factor = *seed;
  for_rows(rows, [&](int64_t row) {
    const int64_t first = row * rows.columns, label = labels.at(row);
    const W shift = lse[row];
    for_columns<T>(rows, [&](auto at) {
      auto values = at.load(logits + first);
      for (int k = 0; k < at.kCount; ++k) {
        const W hit = at.first + k == label ? W(1) : W(0);
        values.at[k] = label < 0 ? W(0) : factor * (exponential(values.at[k] - shift) - hit);
      }
      at.store(d + first, values);
    });
  });
}

}  // namespace

// logits, labels → sum, weight, lse
void cross_entropy_kernel(const KernelArgs& args) {
  const TensorView &logits = args.inputs[0], &lse = args.outputs[2];
  const Labels labels = labels_of(args, args.inputs[1], logits.dims[1]);
  double* losses = static_cast<double*>(args.workspace);
  visit_floating(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = WideOf<T>;
    launch_rows(args, rows_of(logits, {logits.data}), sizeof(T), row_losses<T>, logits.as<T>(), labels, lse.as<W>(), losses);
    launch(args, 1, 512, 0, fold_losses<W>, logits.dims[0], losses, labels, args.outputs[0].as<W>(), args.outputs[1].as<W>());
  });
}

// seed, logits, labels, lse → d
void cross_entropy_grad_kernel(const KernelArgs& args) {
  const TensorView &logits = args.inputs[1], &d = args.outputs[0];
  const Labels labels = labels_of(args, args.inputs[2], logits.dims[1]);
  visit_floating(logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = WideOf<T>;
    launch_rows(args, rows_of(logits, {logits.data, d.data}), sizeof(T), row_gradients<T>, args.inputs[0].as<W>(), logits.as<T>(), labels,
                args.inputs[3].as<W>(), d.as<T>());
  });
}

}  // namespace zeroplan::kernels_cuda
