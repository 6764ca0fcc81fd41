// Small helpers shared by the tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "cuda_host/control.h"

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), cudaSuccess);
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* get() const { return data_; }
  std::size_t size() const { return count_; }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

inline std::vector<float> random_floats(std::size_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1.0F, 1.0F);
  std::vector<float> values(count);
  for (float& v : values) v = draw(engine);
  return values;
}

// Every test starts from and returns to a clean device, without leaks.
class CudaHostTest : public testing::Test {
 protected:
  void SetUp() override { cuda_host::reset(); }
  void TearDown() override { EXPECT_EQ(cuda_host::reset(), 0U) << "leaked device or pinned memory"; }
};
