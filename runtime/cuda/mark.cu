#include <algorithm>

#include "kernels/cuda/errors.h"
#include "runtime/cuda/cuda_stream.h"

namespace zeroplan {

namespace {

__global__ void write_word(volatile uint32_t* word, uint32_t value) {
  __threadfence_system();
  *word = value;
}

}  // namespace

void enqueue_mark(cudaStream_t stream, uint32_t* word, uint32_t value) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 1;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, write_word, static_cast<volatile uint32_t*>(word), value), "cudaLaunchKernelEx");
}

}  // namespace zeroplan
