// cross_entropy over logits [R, C] and labels [R]; the softmax itself is never stored.
#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "kernels/failures.h"
#include "kernels/scalar/math.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

class Labels {
 public:
  Labels(const TensorView& view, const Attributes& attributes, int64_t classes)
      : view_(view), ignoring_(attributes.has(Attr::ignore_index)), ignored_(attributes.get_int(Attr::ignore_index, 0)) {
    for (int64_t row = 0; row < view.dims[0]; ++row) {
      const int64_t label = at(row);
      if (!ignored(row) && (label < 0 || label >= classes)) label_outside_classes(label, row, classes);
    }
  }
  int64_t at(int64_t row) const {
    return view_.dtype == DType::i32 ? static_cast<const int32_t*>(view_.data)[row] : static_cast<const int64_t*>(view_.data)[row];
  }
  bool ignored(int64_t row) const { return ignoring_ && at(row) == ignored_; }

 private:
  const TensorView& view_;
  bool ignoring_;
  int64_t ignored_;
};

template <typename T>
double row_log_sum_exp(const T* x, int64_t n) {
  const T top = max_over(x, n);
  const Vec<T> shift(top);
  const T sum = sum_over<T>(n, [=](auto at) ZP_LAMBDA { return exp(at.load(x) - shift); });
  return static_cast<double>(top) + std::log(static_cast<double>(sum));
}

template <typename T>
void run_cross_entropy(const KernelArgs& args) {
  const int64_t rows = args.inputs[0].dims[0], classes = args.inputs[0].dims[1];
  const T* logits = static_cast<const T*>(args.inputs[0].data);
  T* lse = static_cast<T*>(args.outputs[2].data);
  double* losses = static_cast<double*>(args.workspace);  // [rows]
  const Labels labels(args.inputs[1], *args.attributes, classes);
  parallel_ranges(args.threads, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const double value = row_log_sum_exp(logits + row * classes, classes);
      lse[row] = static_cast<T>(value);
      losses[row] = labels.ignored(row) ? 0 : value - static_cast<double>(logits[row * classes + labels.at(row)]);
    }
  });
  double sum = 0, weight = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (labels.ignored(row)) continue;
    sum += losses[row];
    weight += 1;
  }
  *static_cast<T*>(args.outputs[0].data) = static_cast<T>(sum);
  *static_cast<T*>(args.outputs[1].data) = static_cast<T>(weight);
}

// d = seed · (softmax - one-hot); may be in place on the logits.
template <typename T>
void run_cross_entropy_grad(const KernelArgs& args) {
  const int64_t rows = args.inputs[1].dims[0], classes = args.inputs[1].dims[1];
  const T seed = *static_cast<const T*>(args.inputs[0].data);
  const T *logits = static_cast<const T*>(args.inputs[1].data), *lse = static_cast<const T*>(args.inputs[3].data);
  T* d = static_cast<T*>(args.outputs[0].data);
  const Labels labels(args.inputs[2], *args.attributes, classes);
  parallel_ranges(args.threads, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = logits + row * classes;
      T* to = d + row * classes;
      if (labels.ignored(row)) {
        std::fill_n(to, classes, T(0));
        continue;
      }
      const Vec<T> shift(lse[row]), factor(seed);
      const T hit = seed * (exp(from[labels.at(row)] - lse[row]) - T(1));
      for_lanes<T>(classes, [=](auto at) ZP_LAMBDA { at.store(to, factor * exp(at.load(from) - shift)); });
      to[labels.at(row)] = hit;
    }
  });
}

}  // namespace

void cross_entropy_kernel(const KernelArgs& args) {
  visit_floating(args.inputs[0].dtype, [&](auto zero) { run_cross_entropy<decltype(zero)>(args); });
}

void cross_entropy_grad_kernel(const KernelArgs& args) {
  visit_floating(args.outputs[0].dtype, [&](auto zero) { run_cross_entropy_grad<decltype(zero)>(args); });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
