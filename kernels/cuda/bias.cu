#include "kernels/cuda/bias.h"

#include "kernels/cuda/rows.cuh"

namespace zeroplan::kernels_cuda {

namespace {

// y [rows, n], bias [n]
template <typename T>
__global__ void add_to_rows(Rows rows, T* y, const T* bias) {
  for_rows(rows, [&](int64_t row) {
    for_columns<T>(rows, [&](auto at) {
      auto values = at.load(y + row * rows.columns);
      const auto added = at.load(bias);
      for (int k = 0; k < at.kCount; ++k) values.at[k] += added.at[k];
      at.store(y + row * rows.columns, values);
    });
  });
}

}  // namespace

void add_bias(const KernelArgs& args, const TensorView& y, const void* bias) {
  visit_floating(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_rows(args, rows_of(y, {y.data, bias}), sizeof(T), add_to_rows<T>, y.as<T>(), static_cast<const T*>(bias));
  });
}

}  // namespace zeroplan::kernels_cuda
