#pragma once
// Elementary functions of float and double under one name.
#include <cmath>

namespace zeroplan::kernels_cuda {

__device__ inline float exponential(float x) { return ::expf(x); }
__device__ inline double exponential(double x) { return ::exp(x); }
__device__ inline float logarithm(float x) { return ::logf(x); }
__device__ inline double logarithm(double x) { return ::log(x); }
__device__ inline float inverse_root(float x) { return 1.0f / ::sqrtf(x); }
__device__ inline double inverse_root(double x) { return 1.0 / ::sqrt(x); }

}  // namespace zeroplan::kernels_cuda
