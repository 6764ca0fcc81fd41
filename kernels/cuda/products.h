#pragma once
// Matrix products by cuBLASLt. Which algorithm makes a product is chosen once, by one rank for all: others need not give the same bits.
#include <compare>
#include <map>
#include <memory>
#include <string>

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
  int bias_alignment = 0;  // bytes; 0: no bias
  bool added = false;
  int64_t workspace_bytes = 0;  // the most that the algorithm may use
  auto operator<=>(const ProductProblem&) const = default;
};
// In words, all of it: "float32 [64, 32] · [32, 16], …".
std::string product_text(const ProductProblem& problem);

// The largest power of two up to that of arenas that divides all bits set in `addresses`. No further: where an arena puts a tensor, which
// differs by ranks and stage, must not choose the algorithm.
int product_alignment(uintptr_t addresses);

struct ProductData {
  const void *a, *b, *bias, *added;  // bias, added: null where the problem has none
  void* y;                           // may be added
};

// What makes a product. The bytes mean the same to all GPUs of one kind under one version of the library.
struct ProductChoice {
  cublasLtMatmulAlgo_t algorithm = {};
  bool adds_bias = false;  // the library does for some types and shapes only
};
using ProductChoices = std::map<std::string, ProductChoice>;  // by product_text

class Products {
 public:
  // Without choices the library is asked at the first call with a problem.
  explicit Products(cublasLtHandle_t handle, std::shared_ptr<const ProductChoices> choices = nullptr)
      : handle_(handle), choices_(std::move(choices)) {}
  Products(const Products&) = delete;

  // By cublasLtMatmulAlgoGetHeuristic. Throws Error where no algorithm takes the problem.
  ProductChoice choose(const ProductProblem& problem) const;
  // Why this GPU cannot make the product so, by cublasLtMatmulAlgoCheck; empty: it can.
  std::string trouble_of(const ProductProblem& problem, const ProductChoice& choice) const;
  // Enqueues the product; returns whether it adds the bias. Throws Error where it is not among the choices.
  bool run(const ProductProblem& problem, const ProductData& data, void* workspace, cudaStream_t stream);

 private:
  struct Prepared {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, y;
    ProductChoice choice;
  };
  static Prepared prepare(const ProductProblem& problem, bool adds_bias);
  bool find_algorithm(const ProductProblem& problem, Prepared& made) const;
  Prepared& prepared(const ProductProblem& problem);

  cublasLtHandle_t handle_;
  std::shared_ptr<const ProductChoices> choices_;
  std::map<ProductProblem, Prepared> prepared_;
};

}  // namespace zeroplan
