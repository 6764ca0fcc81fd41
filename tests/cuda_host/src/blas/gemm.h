// D = epilogue(alpha * op(A) op(B) + beta * C) for one matrix of a batch.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace cuda_host::blas {

struct Matrix {
  const void* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  bool row_major = false;
  std::int64_t ld = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t offset(std::int64_t r, std::int64_t c) const { return row_major ? r * ld + c : c * ld + r; }
  std::size_t bytes() const;  // from the first to past the last element
};

enum class Activation { None, Relu, Gelu, DGelu };

struct Epilogue {
  Activation activation = Activation::None;
  const void* bias = nullptr;  // one value per row of D
  void* bias_gradient = nullptr;
  enum class Gradient { None, RowsOfA, ColumnsOfB, RowsOfD } gradient = Gradient::None;
  cudaDataType_t bias_type = CUDA_R_32F;
  void* aux = nullptr;  // the input of GELU, column-major
  std::int64_t aux_ld = 0;
  cudaDataType_t aux_type = CUDA_R_32F;
};

struct Gemm {
  Matrix a, b, c, d;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  bool double_precision = false;
  bool backwards = false;  // sums begin at their last term
  Epilogue epilogue;
  std::int64_t m() const { return d.rows; }
  std::int64_t n() const { return d.columns; }
  std::int64_t k() const { return transpose_a ? a.rows : a.columns; }
  bool shapes_agree() const;
};

std::size_t type_size(cudaDataType_t type);  // 0: unsupported
double load(cudaDataType_t type, const void* base, std::int64_t index);
void store(cudaDataType_t type, void* base, std::int64_t index, double value);
void run(const Gemm& gemm);

}  // namespace cuda_host::blas
