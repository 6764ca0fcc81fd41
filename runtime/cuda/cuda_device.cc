#include "runtime/cuda/cuda_device.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cuda/errors.h"
#include "runtime/cuda/cuda_stream.h"

namespace zeroplan {
namespace {

void require_size(int64_t bytes) {
  if (bytes < 0) throw Error(fmt::format("cannot allocate {} bytes", bytes));
}

[[noreturn]] void throw_out_of_memory(int64_t bytes) {
  cudaGetLastError();
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  throw Error(fmt::format(
      "out of memory: {} bytes asked for, {} bytes free of the GPU's {}; use more ranks, a higher stage or a smaller micro-batch", bytes,
      free, total));
}

class CudaMemory : public DeviceMemory {
 public:
  explicit CudaMemory(int64_t bytes) : bytes_(bytes) {
    require_size(bytes);
    const cudaError_t status = cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (status == cudaErrorMemoryAllocation) throw_out_of_memory(bytes);
    check_cuda(status, "cudaMalloc");
    try {
      check_cuda(cudaMemset(data_, 0, static_cast<size_t>(bytes)), "cudaMemset");
      check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // other streams do not wait for the fill
    } catch (const Error&) {
      cudaFree(data_);
      throw;
    }
  }
  ~CudaMemory() override { cudaFree(data_); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
  void* data_ = nullptr;
};

class PinnedMemory : public DeviceMemory {
 public:
  explicit PinnedMemory(int64_t bytes) : bytes_(bytes) {
    require_size(bytes);
    check_cuda(cudaHostAlloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 1)), cudaHostAllocPortable | cudaHostAllocMapped),
               "cudaHostAlloc");
  }
  ~PinnedMemory() override { cudaFreeHost(data_); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_;
  void* data_ = nullptr;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {
    CudaDevice::use();
    check_cuda(cudaGetDeviceProperties(&properties_, index_), "cudaGetDeviceProperties");
    check_cuda(cudaDeviceGetStreamPriorityRange(&lowest_, &highest_), "cudaDeviceGetStreamPriorityRange");
  }
  void use() override { check_cuda(cudaSetDevice(index_), "cudaSetDevice"); }
  std::unique_ptr<DeviceMemory> alloc(int64_t bytes) override { return std::make_unique<CudaMemory>(bytes); }
  std::unique_ptr<DeviceMemory> alloc_host(int64_t bytes) override { return std::make_unique<PinnedMemory>(bytes); }
  std::unique_ptr<Stream> new_stream(StreamKind kind) override {
    return std::make_unique<CudaStream>(kind == StreamKind::compute ? lowest_ : highest_);
  }
  std::unique_ptr<Event> new_event() override { return std::make_unique<CudaEvent>(); }
  DeviceProperties properties() const override {
    return {.name = fmt::format("cuda:{} {}, sm_{}{}", index_, properties_.name, properties_.major, properties_.minor),
            .memory_bytes = static_cast<int64_t>(properties_.totalGlobalMem),
            .host = false};
  }

 private:
  int index_;
  cudaDeviceProp properties_ = {};
  int lowest_ = 0, highest_ = 0;  // priorities: numbers fall as priority rises
};

}  // namespace

int cuda_devices() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw Error("no GPU is at hand: this process sees no CUDA device; run on a machine with one, or with --device cpu");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  if (driver == 0) throw Error("no GPU is at hand: there is no CUDA driver; run on a machine with one, or with --device cpu");
  if (status == cudaErrorInsufficientDriver || driver < runtime)
    throw Error(fmt::format("the CUDA driver is for CUDA {}.{}, this program needs {}.{}; update the driver, or run with --device cpu",
                            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10));
  check_cuda(status, "cudaGetDeviceCount");
  return count;
}

std::unique_ptr<Device> make_cuda_device(int index) {
  const int count = cuda_devices();
  if (index < 0 || index >= count) throw Error(fmt::format("GPU {} was asked for; this process sees {}, from 0", index, count));
  return std::make_unique<CudaDevice>(index);
}

}  // namespace zeroplan
