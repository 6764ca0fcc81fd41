// random_uniform, dropout, dropout_grad: the numbers of the CPU kernels. Each thread makes the words of one block of the generator.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/storage.cuh"
#include "kernels/scalar/philox.h"

namespace zeroplan::kernels_cuda {

namespace {

constexpr int64_t kSpan = 64;  // neighbouring blocks of the generator give the same word to neighbouring elements

__device__ PhiloxStream stream_of(const RunScalars& s, int64_t key) { return {s.seed, key, s.step, s.micro_batch}; }

// Blocks of the generator for `count` elements, `each` of which come from one.
int64_t generator_blocks(int64_t count, int64_t each) { return (count + each * kSpan - 1) / (each * kSpan) * kSpan; }

// The element that gets number `k` of the `each` that block b makes.
__device__ int64_t element_of(int64_t b, int k, int each) { return (b / kSpan * each + k) * kSpan + b % kSpan; }

// y [count]: elements get 53 bits, words 2 k and 2 k + 1 of a block.
template <typename T>
__global__ void make_uniform(int64_t blocks, int64_t count, int64_t key, const RunScalars* scalars, T* y) {
  const PhiloxStream stream = stream_of(*scalars, key);
  for_items(blocks, [&](int64_t b) {
    const PhiloxBlock words = stream.block(b);
    for (int k = 0; k < 2; ++k) {
      const int64_t i = element_of(b, k, 2);
      const uint64_t bits = (uint64_t{words.word[2 * k]} << 32 | words.word[2 * k + 1]) >> 11;
      if (i < count) y[i] = sizeof(T) == 4 ? static_cast<T>(bits >> 29) * T(0x1p-24) : static_cast<T>(bits) * T(0x1p-53);
    }
  });
}

// x, y, mask [count]; y may be x.
template <typename T>
__global__ void drop(int64_t blocks, int64_t count, int64_t key, uint64_t kept_from, WideOf<T> scale, const RunScalars* scalars, const T* x,
                     T* y, uint8_t* mask) {
  const PhiloxStream stream = stream_of(*scalars, key);
  for_items(blocks, [&](int64_t b) {
    const PhiloxBlock words = stream.block(b);
    for (int k = 0; k < 4; ++k) {
      const int64_t i = element_of(b, k, 4);
      if (i >= count) return;
      const bool keep = words.word[k] >= kept_from;
      mask[i] = keep;
      y[i] = narrow<T>(keep ? widen(x[i]) * scale : WideOf<T>(0));
    }
  });
}

// dy, mask, dx [count]; dx may be dy.
template <typename T>
__global__ void drop_back(int64_t count, WideOf<T> scale, const T* dy, const uint8_t* mask, T* dx) {
  for_items(count, [&](int64_t i) { dx[i] = narrow<T>(mask[i] != 0 ? widen(dy[i]) * scale : WideOf<T>(0)); });
}

}  // namespace

// → y in [0, 1), float or double
void random_uniform_kernel(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  const int64_t count = y.elements(), key = args.attributes->get_int(Attr::key);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, generator_blocks(count, 2), make_uniform<T>, count, key, args.scalars, y.as<T>());
  };
  if (y.dtype == DType::f32) return run(float{});
  if (y.dtype == DType::f64) return run(double{});
  unhandled_dtype(y.dtype);
}

// x → y, mask
void dropout_kernel(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0], &mask = args.outputs[1];
  const int64_t count = y.elements(), key = args.attributes->get_int(Attr::key);
  const double ratio = args.attributes->get_double(Attr::ratio);
  visit_floating(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, generator_blocks(count, 4), drop<T>, count, key, static_cast<uint64_t>(ratio * 0x1p32),
                static_cast<WideOf<T>>(1 / (1 - ratio)), args.scalars, x.as<T>(), y.as<T>(), mask.as<uint8_t>());
  });
}

// dy, mask → dx
void dropout_grad_kernel(const KernelArgs& args) {
  const TensorView &dy = args.inputs[0], &mask = args.inputs[1], &dx = args.outputs[0];
  const double scale = 1 / (1 - args.attributes->get_double(Attr::ratio));
  visit_floating(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_over(args, dx.elements(), drop_back<T>, static_cast<WideOf<T>>(scale), dy.as<T>(), mask.as<uint8_t>(), dx.as<T>());
  });
}

}  // namespace zeroplan::kernels_cuda
