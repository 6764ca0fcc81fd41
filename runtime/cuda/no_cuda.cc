// Built where CUDA is not.
#include "base/error.h"
#include "runtime/cuda/cuda_backend.h"

namespace zeroplan {

void require_gpu() {
  throw Error(
      "the plan is for device cuda, and this program was built without CUDA; build it with -DZEROPLAN_CUDA=ON, or compile the plan "
      "with --device cpu");
}

Backend make_cuda_backend(const Plan&, std::chrono::milliseconds) {
  require_gpu();
  return {};
}

Backend make_cuda_process_backend(const Plan&, std::chrono::milliseconds, const CudaJob&) {
  require_gpu();
  return {};
}

}  // namespace zeroplan
