// random_uniform, dropout, dropout_grad. Which number an element gets depends on its place in the tensor alone: not on threads, not on the
// instruction set.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/space.h"
#include "kernels/scalar/philox.h"

namespace zeroplan::ZP_KERNEL_NAMESPACE {

namespace {

constexpr int kBlocks = 64;  // blocks that are made together

// word w of block `first + lane` at words[w][lane]
struct Words {
  uint32_t word[4][kBlocks];
  Words(const PhiloxStream& stream, int64_t first) {
    for (int lane = 0; lane < kBlocks; ++lane) {
      const PhiloxBlock block = stream.block(first + lane);
      for (int w = 0; w < 4; ++w) word[w][lane] = block.word[w];
    }
  }
};

PhiloxStream stream_of(const KernelArgs& args) {
  check(args.scalars != nullptr, "random numbers need the step");
  return {args.scalars->seed, args.attributes->get_int(Attr::key), args.scalars->step, args.scalars->micro_batch};
}

// fn(first element, count ≤ kBlocks, words): elements [256 g + 64 w, + 64) get word w of blocks [64 g, 64 g + 64).
template <typename Fn>
void each_word(const KernelArgs& args, int64_t count, const Fn& fn) {
  const PhiloxStream stream = stream_of(args);
  parallel_ranges(args.threads, count, 4 * kBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group += 4 * kBlocks) {
      const Words words(stream, group / 4);
      for (int w = 0; w < 4 && group + w * kBlocks < end; ++w)
        fn(group + w * kBlocks, std::min<int64_t>(kBlocks, end - group - w * kBlocks), words.word[w]);
    }
  });
}

// fn(element, number of 53 bits): elements [128 g + 64 h, + 64) get words 2 h and 2 h + 1 of blocks [64 g, 64 g + 64).
template <typename Fn>
void each_number(const KernelArgs& args, int64_t count, const Fn& fn) {
  const PhiloxStream stream = stream_of(args);
  parallel_ranges(args.threads, count, 2 * kBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group += 2 * kBlocks) {
      const Words words(stream, group / 2);
      for (int64_t i = 0; i < std::min<int64_t>(2 * kBlocks, end - group); ++i) {
        const int half = static_cast<int>(i / kBlocks), lane = static_cast<int>(i % kBlocks);
        fn(group + i, (uint64_t{words.word[2 * half][lane]} << 32 | words.word[2 * half + 1][lane]) >> 11);
      }
    }
  });
}

template <typename T>
void drop(const KernelArgs& args, double ratio) {
  const T* x = static_cast<const T*>(args.inputs[0].data);
  T* y = static_cast<T*>(args.outputs[0].data);
  uint8_t* mask = static_cast<uint8_t*>(args.outputs[1].data);
  const T scale = static_cast<T>(1 / (1 - ratio));
  const uint64_t kept_from = static_cast<uint64_t>(ratio * 0x1p32);
  each_word(args, count_elements(args.outputs[0]), [&](int64_t first, int64_t count, const uint32_t* words) {
    for (int64_t i = 0; i < count; ++i) {
      const bool keep = words[i] >= kept_from;
      mask[first + i] = keep;
      y[first + i] = keep ? x[first + i] * scale : T{0};
    }
  });
}

}  // namespace

// → y in [0, 1)
void random_uniform_kernel(const KernelArgs& args) {
  const TensorView& y = args.outputs[0];
  visit_floating(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = static_cast<T*>(y.data);
    each_number(args, count_elements(y), [&](int64_t i, uint64_t bits) {
      if constexpr (sizeof(T) == 4)
        to[i] = static_cast<float>(bits >> 29) * 0x1p-24f;
      else
        to[i] = static_cast<double>(bits) * 0x1p-53;
    });
  });
}

// x → y, mask
void dropout_kernel(const KernelArgs& args) {
  const double ratio = args.attributes->get_double(Attr::ratio);
  visit_floating(args.outputs[0].dtype, [&](auto zero) { drop<decltype(zero)>(args, ratio); });
}

// dy, mask → dx
void dropout_grad_kernel(const KernelArgs& args) {
  const double ratio = args.attributes->get_double(Attr::ratio);
  visit_floating(args.outputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* dy = static_cast<const T*>(args.inputs[0].data);
    const uint8_t* mask = static_cast<const uint8_t*>(args.inputs[1].data);
    T* dx = static_cast<T*>(args.outputs[0].data);
    const T scale = static_cast<T>(1 / (1 - ratio));
    parallel_ranges(args.threads, count_elements(args.outputs[0]), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) dx[i] = mask[i] ? dy[i] * scale : T{0};
    });
  });
}

}  // namespace zeroplan::ZP_KERNEL_NAMESPACE
