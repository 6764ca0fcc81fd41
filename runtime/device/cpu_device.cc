// The CPU: compute work runs on the thread that issues it, other streams are worker threads.
#include "runtime/device/cpu_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/checked.h"
#include "base/error.h"

namespace zeroplan {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

// Bytes that the system could still hand out, -1 where it does not say.
int64_t available_bytes() {
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return -1;
  char line[256];
  long long available = -1, swap = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    std::sscanf(line, "MemAvailable: %lld", &available);
    std::sscanf(line, "SwapFree: %lld", &swap);
  }
  std::fclose(file);
  return available < 0 ? -1 : (available + swap) * 1024;
}

class CpuMemory : public DeviceMemory {
 public:
  explicit CpuMemory(int64_t bytes) : bytes_(bytes), mapped_(round_up(std::max<int64_t>(bytes, 1), kPage)) {
    void* p = mmap(nullptr, static_cast<size_t>(mapped_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : p;
    if (data_ != nullptr && mapped_ >= 2 * kHugePage) madvise(data_, static_cast<size_t>(mapped_), MADV_HUGEPAGE);
  }
  ~CpuMemory() override {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(mapped_));
  }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  int64_t bytes_, mapped_;
  void* data_ = nullptr;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  std::unique_ptr<DeviceMemory> alloc(int64_t bytes) override {
    if (bytes < 0) throw Error(fmt::format("cannot allocate {} bytes", bytes));
    const int64_t free = available_bytes();
    std::unique_ptr<CpuMemory> memory;
    if (free < 0 || bytes <= free) memory = std::make_unique<CpuMemory>(bytes);
    if (!memory || memory->data() == nullptr) {
      throw Error(fmt::format("out of memory: {} bytes asked for, {} bytes free; use more ranks, a higher stage or a smaller micro-batch",
                              bytes, free));
    }
    return memory;
  }
  std::unique_ptr<DeviceMemory> alloc_host(int64_t bytes) override { return alloc(bytes); }
  std::unique_ptr<Stream> new_stream(StreamKind kind) override {
    if (kind == StreamKind::compute) return make_inline_stream(threads_);
    return make_worker_stream();
  }
  std::unique_ptr<Event> new_event() override { return make_cpu_event(); }
  DeviceProperties properties() const override {
    const int64_t total = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    return {fmt::format("cpu, {} hardware threads", std::thread::hardware_concurrency()), total};
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
  if (threads < 1) throw Error(fmt::format("{} threads per rank: at least 1 is needed", threads));
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace zeroplan
