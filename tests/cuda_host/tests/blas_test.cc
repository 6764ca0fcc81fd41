// cuBLASLt and cuBLAS subsets against triple loops.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <functional>

#include "device_buffer.h"

namespace {

constexpr int m = 16, n = 9, k = 12;

// One matmul with every descriptor set by hand; `tweak` adds attributes.
struct LtCase {
  cudaDataType_t type = CUDA_R_32F;
  bool ta = false, tb = false, row = false;
  float alpha = 1, beta = 0;
  std::function<void(cublasLtMatmulDesc_t)> tweak = [](cublasLtMatmulDesc_t) {};
};

cublasLtMatrixLayout_t layout(cudaDataType_t type, int rows, int columns, bool row) {
  cublasLtMatrixLayout_t l = nullptr;
  cublasLtMatrixLayoutCreate(&l, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), row ? columns : rows);
  const cublasLtOrder_t order = row ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order)), CUBLAS_STATUS_SUCCESS);
  return l;
}

cublasStatus_t matmul(const LtCase& c, const void* a, const void* b, void* d) {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatmulPreference_t preference;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cublasOperation_t ta = c.ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = c.tb ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta));
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb));
  c.tweak(op);
  auto la = c.ta ? layout(c.type, k, m, c.row) : layout(c.type, m, k, c.row);
  auto lb = c.tb ? layout(c.type, n, k, c.row) : layout(c.type, k, n, c.row);
  auto ld = layout(c.type, m, n, c.row);
  cublasLtMatmulPreferenceCreate(&preference);
  cublasLtMatmulHeuristicResult_t result;
  int found = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, op, la, lb, ld, ld, preference, 1, &result, &found);
  if (status == CUBLAS_STATUS_SUCCESS) {
    EXPECT_EQ(found, 1);
    status = cublasLtMatmul(handle, op, &c.alpha, a, la, b, lb, &c.beta, d, ld, d, ld, &result.algo, nullptr, 0, nullptr);
  }
  for (auto l : {la, lb, ld}) cublasLtMatrixLayoutDestroy(l);
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(op);
  cublasLtDestroy(handle);
  return status;
}

std::size_t at(int r, int c, int rows, int columns, bool row) { return static_cast<std::size_t>(row ? r * columns + c : c * rows + r); }

double dot(const LtCase& c, const std::vector<float>& a, const std::vector<float>& b, int i, int j) {
  double total = 0;
  for (int l = 0; l < k; ++l) {
    const float x = c.ta ? a[at(l, i, k, m, c.row)] : a[at(i, l, m, k, c.row)];
    const float y = c.tb ? b[at(j, l, n, k, c.row)] : b[at(l, j, k, n, c.row)];
    total += double{x} * y;
  }
  return total;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

void epilogue(cublasLtMatmulDesc_t op, cublasLtEpilogue_t kind, void* bias, void* aux = nullptr) {
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &kind, sizeof(kind)), CUBLAS_STATUS_SUCCESS);
  if (bias != nullptr) cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
  if (aux == nullptr) return;
  const std::int64_t ld = m;
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof(aux));
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof(ld));
}

class BlasTest : public CudaHostTest {
 protected:
  const std::vector<float> a = random_floats(m * k, 1), b = random_floats(k * n, 2), bias = random_floats(m, 3);
};

TEST_F(BlasTest, TransposesAndOrders) {
  for (int bits = 0; bits < 8; ++bits) {
    LtCase c;
    c.ta = bits & 1;
    c.tb = bits & 2;
    c.row = bits & 4;
    c.alpha = 2;
    c.beta = 3;
    const DeviceBuffer<float> da(a), db(b), dd(std::vector<float>(m * n, 1.0F));
    ASSERT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
    const auto d = dd.values();
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) EXPECT_NEAR(d[at(i, j, m, n, c.row)], 2 * dot(c, a, b, i, j) + 3, 1e-4);
    }
  }
}

template <class T>
void check_narrow(cudaDataType_t type, const std::vector<float>& a, const std::vector<float>& b) {
  LtCase c;
  c.type = type;
  std::vector<T> ha, hb;
  for (const float x : a) ha.push_back(T(x));
  for (const float x : b) hb.push_back(T(x));
  const DeviceBuffer<T> da(ha), db(hb), dd(m * n);
  ASSERT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  EXPECT_NEAR(static_cast<float>(dd.values()[at(3, 4, m, n, false)]), dot(c, a, b, 3, 4), 0.05);
}
TEST_F(BlasTest, NarrowTypes) {
  check_narrow<__half>(CUDA_R_16F, a, b);
  check_narrow<__nv_bfloat16>(CUDA_R_16BF, a, b);
}

TEST_F(BlasTest, ForwardAndBackwardEpilogues) {
  const DeviceBuffer<float> da(a), db(b), dbias(bias), dd(m * n), aux(m * n), grad(m), grad_n(n);
  LtCase c;
  c.tweak = [&](cublasLtMatmulDesc_t op) { epilogue(op, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, dbias.get(), aux.get()); };
  ASSERT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  const auto forward = dd.values(), before = aux.values();
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const double x = dot(c, a, b, i, j) + bias[static_cast<std::size_t>(i)];
      EXPECT_NEAR(before[at(i, j, m, n, false)], x, 1e-5);
      EXPECT_NEAR(forward[at(i, j, m, n, false)], gelu(x), 1e-5);
    }
  }
  c.tweak = [&](cublasLtMatmulDesc_t op) { epilogue(op, CUBLASLT_EPILOGUE_DGELU_BGRAD, grad.get(), aux.get()); };
  ASSERT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  const auto backward = dd.values();
  double sum = 0;
  for (int j = 0; j < n; ++j) {
    const double x = before[at(2, j, m, n, false)], h = 1e-4;
    EXPECT_NEAR(backward[at(2, j, m, n, false)], dot(c, a, b, 2, j) * (gelu(x + h) - gelu(x - h)) / (2 * h), 1e-4);
    sum += backward[at(2, j, m, n, false)];
  }
  EXPECT_NEAR(grad.values()[2], sum, 1e-4);
  c.tweak = [&](cublasLtMatmulDesc_t op) { epilogue(op, CUBLASLT_EPILOGUE_BGRADB, grad_n.get()); };
  ASSERT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  double column = 0;
  for (int l = 0; l < k; ++l) column += b[at(l, 5, k, n, false)];
  EXPECT_NEAR(grad_n.values()[5], column, 1e-5);
}

// By a matrix whose sums differ with their order.
TEST_F(BlasTest, AnotherDeviceMayHaveAnotherAlgorithm) {
  std::vector<float> ones(a.size(), 1), steps(b.size(), 0.1F);
  for (int j = 0; j < n; ++j) steps[at(0, j, k, n, false)] = 1e6F;
  const DeviceBuffer<float> da(ones), db(steps), dd(m * n);
  ASSERT_EQ(matmul(LtCase{}, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  const auto forwards = dd.values();
  cuda_host::settings().other_products = 0;
  ASSERT_EQ(matmul(LtCase{}, da.get(), db.get(), dd.get()), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(dd.values(), forwards);
  EXPECT_NEAR(dd.values()[0], forwards[0], 1);
}

TEST_F(BlasTest, AnAlgorithmIsCheckedOnTheDevice) {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatmulPreference_t preference;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulPreferenceCreate(&preference);
  auto la = layout(CUDA_R_32F, m, k, false), lb = layout(CUDA_R_32F, k, n, false), ld = layout(CUDA_R_32F, m, n, false);
  cublasLtMatmulHeuristicResult_t result, checked = {};
  int found = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(handle, op, la, lb, ld, ld, preference, 1, &result, &found), CUBLAS_STATUS_SUCCESS);
  const auto check = [&] { return cublasLtMatmulAlgoCheck(handle, op, la, lb, ld, ld, &result.algo, &checked); };
  EXPECT_EQ(check(), CUBLAS_STATUS_SUCCESS);
  cuda_host::settings().other_products = 0;
  EXPECT_EQ(check(), CUBLAS_STATUS_SUCCESS);
  cuda_host::settings().own_products_only = true;
  EXPECT_EQ(check(), CUBLAS_STATUS_NOT_SUPPORTED);
  result.algo.data[0] = 1;
  EXPECT_EQ(check(), CUBLAS_STATUS_INVALID_VALUE) << "no algorithm";
  for (auto l : {la, lb, ld}) cublasLtMatrixLayoutDestroy(l);
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(op);
  cublasLtDestroy(handle);
}

TEST_F(BlasTest, BadArguments) {
  const DeviceBuffer<float> da(a), db(b), dd(m * n);
  std::vector<float> host(m * k);
  LtCase c;
  EXPECT_EQ(matmul(c, host.data(), db.get(), dd.get()), CUBLAS_STATUS_INVALID_VALUE) << "host pointer";
  EXPECT_EQ(matmul(c, da.get() + 1, db.get(), dd.get()), CUBLAS_STATUS_INVALID_VALUE) << "too short";
  c.tweak = [&](cublasLtMatmulDesc_t op) { epilogue(op, CUBLASLT_EPILOGUE_BIAS, nullptr); };
  EXPECT_EQ(matmul(c, da.get(), db.get(), dd.get()), CUBLAS_STATUS_NOT_SUPPORTED) << "no bias pointer";
  cuda_host::fail_call("cublasLtMatmul", 1, CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(matmul(LtCase{}, da.get(), db.get(), dd.get()), CUBLAS_STATUS_EXECUTION_FAILED);
}

TEST_F(BlasTest, StridedBatched) {
  cublasHandle_t handle;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  const auto a3 = random_floats(3 * m * k, 5);
  const DeviceBuffer<float> da(a3), db(b), dd(3 * m * n);
  const float one = 1, zero = 0;  // beta 0 must ignore the NaN in fresh memory
  ASSERT_EQ(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, da.get(), CUDA_R_32F, m, m * k, db.get(),
                                       CUDA_R_32F, k, 0, &zero, dd.get(), CUDA_R_32F, m, m * n, 3, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  const auto d = dd.values();
  const std::vector<float> last(a3.begin() + 2 * m * k, a3.end());
  EXPECT_NEAR(d[2 * m * n + at(7, 8, m, n, false)], dot(LtCase{}, last, b, 7, 8), 1e-5);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
