#include "tests/cuda_kernels/device_call.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "graph/ops/op_def.h"
#include "kernels/cuda/product_lists.h"
#include "kernels/failures.h"

namespace zeroplan {

namespace {

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A host buffer and its copy on the device, at the same distance from a 256-byte border.
class Mirror {
 public:
  explicit Mirror(std::span<std::byte> host) : host_(host), shift_(reinterpret_cast<uintptr_t>(host.data()) % 256) {
    check_cuda(cudaMalloc(&memory_, host.size() + 256), "cudaMalloc");
    check_cuda(cudaMemcpy(device(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  Mirror(Mirror&& other) noexcept : host_(other.host_), shift_(other.shift_), memory_(std::exchange(other.memory_, nullptr)) {}
  ~Mirror() { cudaFree(memory_); }
  bool holds(const void* p) const { return p >= host_.data() && p < host_.data() + std::max<size_t>(host_.size(), 1); }
  void* move(const void* p) const { return device() + (static_cast<const std::byte*>(p) - host_.data()); }
  void copy_back() const { check_cuda(cudaMemcpy(host_.data(), device(), host_.size(), cudaMemcpyDeviceToHost), "cudaMemcpy"); }

 private:
  std::byte* device() const { return static_cast<std::byte*>(memory_) + shift_; }
  std::span<std::byte> host_;
  size_t shift_;
  void* memory_ = nullptr;
};

class Mirrors {
 public:
  explicit Mirrors(std::span<const std::span<std::byte>> memory) {
    for (const auto& buffer : memory) mirrors_.emplace_back(buffer);
  }
  template <typename T>
  T* move(T* p) const {
    if (p == nullptr) return nullptr;
    for (const Mirror& m : mirrors_)
      if (m.holds(p)) return static_cast<T*>(const_cast<void*>(static_cast<const void*>(m.move(p))));
    throw Error("a pointer of a kernel's arguments is in no buffer of the test");
  }
  void copy_back() const {
    for (const Mirror& m : mirrors_) m.copy_back();
  }

 private:
  std::vector<Mirror> mirrors_;
};

// Of the products that the kernel says it makes: one that it left out fails in its call.
std::shared_ptr<const ProductChoices> choose_products(OpKind op, KernelArgs args, cudaStream_t stream) {
  CudaContext context(stream);
  args.context = &context;
  ProductChoices choices;
  list_products(op, args, [&](const ProductProblem& p) { choices.emplace(product_text(p), context.products().choose(p)); });
  return std::make_shared<const ProductChoices>(std::move(choices));
}

// No op: the kernel is part of one, and chooses as it goes.
void run(Kernel kernel, const OpKind* op, KernelArgs& args, std::span<const std::span<std::byte>> memory) {
  std::vector<TensorView> inputs(args.inputs, args.inputs + args.input_count), outputs(args.outputs, args.outputs + args.output_count);
  std::vector<std::span<std::byte>> buffers(memory.begin(), memory.end());
  RunScalars scalars = args.scalars ? *args.scalars : RunScalars{};
  buffers.emplace_back(reinterpret_cast<std::byte*>(&scalars), sizeof scalars);
  UnitArgs unit = args.unit ? *args.unit : UnitArgs{};
  std::vector<UnitExtent> extents(unit.parameters, unit.parameters + unit.count);
  if (unit.count > 0) buffers.emplace_back(reinterpret_cast<std::byte*>(extents.data()), extents.size() * sizeof(UnitExtent));
  const Mirrors mirrors(buffers);
  for (TensorView& v : inputs) v.data = mirrors.move(v.data);
  for (TensorView& v : outputs) v.data = mirrors.move(v.data);
  if (unit.count > 0) unit.parameters = mirrors.move(extents.data());
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // copies of pageable memory may still be on their way
  const Stream stream;
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.workspace = args.workspace_bytes > 0 ? mirrors.move(args.workspace) : nullptr;
  args.unit = args.unit ? &unit : nullptr;
  args.scalars = mirrors.move(&scalars);
  CudaContext context(stream.get(), op != nullptr ? choose_products(*op, args, stream.get()) : nullptr);
  args.context = &context;
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // the copies are in no order with the stream
  kernel(args);
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  const KernelFault fault = context.take_fault();
  if (fault.kind != KernelFault::none) throw_fault(fault);
  mirrors.copy_back();
}

}  // namespace

void run_on_device(OpKind op, KernelArgs& args, std::span<const std::span<std::byte>> memory) {
  const Kernel kernel = cuda_kernel(op);
  if (kernel == nullptr) throw Error("no CUDA kernel for the op");
  run(kernel, &op, args, memory);
}

void run_on_device(Kernel kernel, KernelArgs& args, std::span<const std::span<std::byte>> memory) { run(kernel, nullptr, args, memory); }

}  // namespace zeroplan
