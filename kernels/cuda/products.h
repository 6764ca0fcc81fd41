#pragma once
// Matrix products by cuBLASLt; the algorithm of each problem is asked for once.
#include <compare>
#include <map>

#include "base/dtype.h"
#include "kernels/cuda/errors.h"

namespace zeroplan {

struct ProductMatrix {
  bool transposed = false;  // columns are contiguous
  int64_t ld = 1;
  int64_t batch_stride = 0;  // elements
  int alignment = 1;         // of the data, bytes
  auto operator<=>(const ProductMatrix&) const = default;
};

// y[m,n] = a[m,k] · b[k,n] + bias[n] + added[m,n], row-major, `batch` times. Halves accumulate in float32; y is of the operands' type, or
// float32 of halves; bias and added are of y's type.
struct ProductProblem {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  ProductMatrix a, b, y;
  DType dtype{}, y_dtype{};
  bool bias = false, added = false;
  int64_t workspace_bytes = 0;  // the most that the algorithm may use
  auto operator<=>(const ProductProblem&) const = default;
};

struct ProductData {
  const void *a, *b, *bias, *added;  // bias, added: null where the problem has none
  void* y;                           // may be added
};

class Products {
 public:
  explicit Products(cublasLtHandle_t handle) : handle_(handle) {}
  Products(const Products&) = delete;

  // Enqueues the product; returns whether it adds the bias: the library does for some types and shapes only. Asks the library (by
  // cublasLtMatmulAlgoGetHeuristic) at the first call with the problem. Throws Error where no algorithm takes it.
  bool run(const ProductProblem& problem, const ProductData& data, void* workspace, cudaStream_t stream);

 private:
  struct Prepared {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, y;
    cublasLtMatmulAlgo_t algorithm;
    bool adds_bias;
  };
  Prepared prepare(const ProductProblem& problem, const ProductData& data) const;
  bool find_algorithm(const ProductProblem& problem, Prepared& made) const;

  cublasLtHandle_t handle_;
  std::map<ProductProblem, Prepared> prepared_;
};

}  // namespace zeroplan
