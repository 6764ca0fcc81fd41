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

// y[m,n] = a[m,k] · b[k,n], row-major, `batch` times. Halves accumulate in float32; y is of the operands' type, or float32 of halves.
struct ProductProblem {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  ProductMatrix a, b, y;
  DType dtype{}, y_dtype{};
  int64_t workspace_bytes = 0;  // the most that the algorithm may use
  auto operator<=>(const ProductProblem&) const = default;
};

class Products {
 public:
  explicit Products(cublasLtHandle_t handle) : handle_(handle) {}
  Products(const Products&) = delete;

  // Enqueues the product. cublasLtMatmulAlgoGetHeuristic at the first call with the problem. Throws Error where no algorithm takes it.
  void run(const ProductProblem& problem, const void* a, const void* b, void* y, void* workspace, cudaStream_t stream);

 private:
  struct Prepared {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, y;
    cublasLtMatmulAlgo_t algorithm;
  };
  Prepared prepare(const ProductProblem& problem) const;

  cublasLtHandle_t handle_;
  std::map<ProductProblem, Prepared> prepared_;
};

}  // namespace zeroplan
