#include "blas/gemm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

namespace cuda_host::blas {

namespace {

// Calls f with a pointer of the matrix's element type.
template <class F>
void with_type(cudaDataType_t type, F f) {
  switch (type) {
    case CUDA_R_64F: return f(static_cast<double*>(nullptr));
    case CUDA_R_16F: return f(static_cast<__half*>(nullptr));
    case CUDA_R_16BF: return f(static_cast<__nv_bfloat16*>(nullptr));
    default: return f(static_cast<float*>(nullptr));
  }
}

float widen(__half x) { return __half2float(x); }
float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
float widen(float x) { return x; }
double widen(double x) { return x; }

void narrow(double x, __half& out) { out = __float2half(static_cast<float>(x)); }
void narrow(double x, __nv_bfloat16& out) { out = __float2bfloat16(static_cast<float>(x)); }
void narrow(double x, float& out) { out = static_cast<float>(x); }
void narrow(double x, double& out) { out = x; }

// op(matrix) as a dense row-major array.
template <class Real>
std::vector<Real> pack(const Matrix& x, bool transpose) {
  const std::int64_t rows = transpose ? x.columns : x.rows;
  const std::int64_t columns = transpose ? x.rows : x.columns;
  std::vector<Real> dense(static_cast<std::size_t>(rows * columns));
  with_type(x.type, [&](auto* tag) {
    const auto* data = static_cast<decltype(tag)>(const_cast<void*>(x.data));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t from = transpose ? x.offset(c, r) : x.offset(r, c);
        dense[static_cast<std::size_t>(r * columns + c)] = static_cast<Real>(widen(data[from]));
      }
    }
  });
  return dense;
}

// Row times block of rows: the inner loop vectorises and B's block stays in cache.
template <class Real>
std::vector<Real> multiply(const std::vector<Real>& a, const std::vector<Real>& b, std::int64_t m, std::int64_t n, std::int64_t k,
                           bool backwards) {
  constexpr std::int64_t block = 64;
  std::vector<Real> product(static_cast<std::size_t>(m * n), Real{0});
  for (std::int64_t first = 0; first < k; first += block) {
    const std::int64_t end = std::min(first + block, k);
    for (std::int64_t i = 0; i < m; ++i) {
      Real* out = product.data() + i * n;
      for (std::int64_t at = first; at < end; ++at) {
        const std::int64_t l = backwards ? k - 1 - at : at;
        const Real factor = a[static_cast<std::size_t>(i * k + l)];
        const Real* row = b.data() + l * n;
        for (std::int64_t j = 0; j < n; ++j) out[j] += factor * row[j];
      }
    }
  }
  return product;
}

constexpr double gelu_scale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

double gelu(double x) { return 0.5 * x * (1 + std::tanh(gelu_scale * (x + gelu_cubic * x * x * x))); }
double gelu_slope(double x) {
  const double t = std::tanh(gelu_scale * (x + gelu_cubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_scale * (1 + 3 * gelu_cubic * x * x);
}

double activate(const Epilogue& e, double value, std::int64_t row, std::int64_t column) {
  const std::int64_t at = column * e.aux_ld + row;
  switch (e.activation) {
    case Activation::None: return value;
    case Activation::Relu: return value > 0 ? value : 0;
    case Activation::Gelu:
      if (e.aux != nullptr) store(e.aux_type, e.aux, at, value);
      return gelu(value);
    case Activation::DGelu: return value * gelu_slope(load(e.aux_type, e.aux, at));
  }
  return value;
}

// count sums of `length` terms each.
template <class Term>
void store_sums(const Epilogue& e, std::int64_t count, std::int64_t length, Term term) {
  for (std::int64_t i = 0; i < count; ++i) {
    double total = 0;
    for (std::int64_t l = 0; l < length; ++l) total += term(i, l);
    store(e.bias_type, e.bias_gradient, i, total);
  }
}

template <class Real>
void run_as(const Gemm& g) {
  const std::int64_t m = g.m(), n = g.n(), k = g.k();
  const std::vector<Real> a = pack<Real>(g.a, g.transpose_a);
  const std::vector<Real> b = pack<Real>(g.b, g.transpose_b);
  std::vector<Real> product = multiply(a, b, m, n, k, g.backwards);
  const Epilogue& e = g.epilogue;
  for (std::int64_t i = 0; i < m; ++i) {
    const double bias = e.bias != nullptr ? load(e.bias_type, e.bias, i) : 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      Real& cell = product[static_cast<std::size_t>(i * n + j)];
      double value = g.alpha * static_cast<double>(cell) + bias;
      // beta == 0 must not read C: it may hold NaN.
      if (g.beta != 0) value += g.beta * load(g.c.type, g.c.data, g.c.offset(i, j));
      value = activate(e, value, i, j);
      cell = static_cast<Real>(value);
      store(g.d.type, const_cast<void*>(g.d.data), g.d.offset(i, j), value);
    }
  }
  switch (e.gradient) {
    case Epilogue::Gradient::None: break;
    case Epilogue::Gradient::RowsOfA:
      store_sums(e, m, k, [&](std::int64_t i, std::int64_t l) { return static_cast<double>(a[static_cast<std::size_t>(i * k + l)]); });
      break;
    case Epilogue::Gradient::ColumnsOfB:
      store_sums(e, n, k, [&](std::int64_t j, std::int64_t l) { return static_cast<double>(b[static_cast<std::size_t>(l * n + j)]); });
      break;
    case Epilogue::Gradient::RowsOfD:
      store_sums(e, m, n,
                 [&](std::int64_t i, std::int64_t j) { return static_cast<double>(product[static_cast<std::size_t>(i * n + j)]); });
      break;
  }
}

}  // namespace

std::size_t type_size(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F: return 8;
    default: return 0;
  }
}

double load(cudaDataType_t type, const void* base, std::int64_t index) {
  double value = 0;
  with_type(type, [&](auto* tag) { value = static_cast<double>(widen(static_cast<decltype(tag)>(const_cast<void*>(base))[index])); });
  return value;
}

void store(cudaDataType_t type, void* base, std::int64_t index, double value) {
  with_type(type, [&](auto* tag) { narrow(value, static_cast<decltype(tag)>(base)[index]); });
}

std::size_t Matrix::bytes() const {
  if (rows == 0 || columns == 0) return 0;
  return static_cast<std::size_t>(offset(rows - 1, columns - 1) + 1) * type_size(type);
}

bool Gemm::shapes_agree() const {
  const std::int64_t a_rows = transpose_a ? a.columns : a.rows;
  const std::int64_t b_rows = transpose_b ? b.columns : b.rows;
  const std::int64_t b_columns = transpose_b ? b.rows : b.columns;
  for (const Matrix* x : {&a, &b, &c, &d}) {
    if (type_size(x->type) == 0 || x->ld < (x->row_major ? x->columns : x->rows)) return false;
  }
  return a_rows == d.rows && b_columns == d.columns && b_rows == k() && c.rows == d.rows && c.columns == d.columns;
}

void run(const Gemm& gemm) { gemm.double_precision ? run_as<double>(gemm) : run_as<float>(gemm); }

}  // namespace cuda_host::blas
