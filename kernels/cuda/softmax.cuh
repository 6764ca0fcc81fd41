#pragma once
// The largest value and the sum of exponentials of a row, in one reading of it.
#include "kernels/cuda/rows.cuh"

namespace zeroplan::kernels_cuda {

// Online softmax (Milakov and Gimelshein, 2018): the sum is scaled whenever a larger value comes. A nan makes it nan.
template <typename T>
__device__ inline SoftmaxSum<WideOf<T>> row_softmax_sum(const Rows& rows, const T* x) {
  using W = WideOf<T>;
  const W lowest = -static_cast<W>(INFINITY);
  SoftmaxSum<W> own = {lowest, W(0)};
  for_columns<T>(rows, [&](auto at) {
    const auto values = at.load(x);
    W top = own.largest;
    for (int k = 0; k < at.kCount; ++k) top = values.at[k] > top ? values.at[k] : top;
    W sum = own.scaled(top);
    for (int k = 0; k < at.kCount; ++k) {
      const W v = values.at[k];
      if (top != lowest || v != v) sum += exponential(v - top);
    }
    own = {top, sum};
  });
  return fold_block(own);
}

}  // namespace zeroplan::kernels_cuda
