// Random numbers have the bits of the CPU kernels.
#include <gtest/gtest.h>

#include "tests/kernels/runner.h"

namespace zeroplan {
namespace {

struct Drawn {
  std::vector<std::byte> y, mask;
  bool operator==(const Drawn&) const = default;
};

Drawn draw(const TestDevice& device, OpKind op, DType dtype, int64_t count, const Attributes& attributes, bool in_place = false) {
  Drawn d{std::vector<std::byte>(count * dtype_bytes(dtype)), std::vector<std::byte>(count)};
  HostTensor x(dtype, {count});
  for (int64_t i = 0; i < count; ++i) x.set(i, 0.5 + static_cast<double>(i % 7));
  std::memcpy(d.y.data(), x.data(), d.y.size());
  const TensorView y = make_view(d.y.data(), dtype, {count});
  const TensorView in[] = {in_place ? y : make_view(x.mutable_data(), dtype, {count})};
  const TensorView out[] = {y, make_view(d.mask.data(), DType::boolean, {count})};
  const RunScalars scalars = {.step = 3, .micro_batch = 2, .seed = 5};
  KernelArgs args;
  args.inputs = in;
  args.input_count = op == OpKind::dropout ? 1 : 0;
  args.outputs = out;
  args.output_count = op == OpKind::dropout ? 2 : 1;
  args.attributes = &attributes;
  args.scalars = &scalars;
  run_kernel(device, op, args);
  return d;
}

constexpr int64_t kCounts[] = {0, 1, 63, 64, 127, 129, 255, 256, 257, 10007, 300000};

TEST(CudaRandom, UniformHasTheBitsOfTheCpu) {
  const Attributes key = {{Attr::key, int64_t{77}}};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t count : kCounts)
      EXPECT_TRUE(draw(test_devices()[0], OpKind::random_uniform, dtype, count, key) ==
                  draw(cpu_device("baseline"), OpKind::random_uniform, dtype, count, key))
          << dtype_name(dtype) << " " << count;
}

TEST(CudaRandom, DropoutHasTheBitsOfTheCpu) {
  for (const double ratio : {0.0, 0.1, 0.5, 1.0})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t count : kCounts) {
        const Attributes attributes = {{Attr::key, int64_t{9}}, {Attr::ratio, ratio}};
        const Drawn want = draw(cpu_device("baseline"), OpKind::dropout, dtype, count, attributes);
        EXPECT_TRUE(draw(test_devices()[0], OpKind::dropout, dtype, count, attributes) == want) << dtype_name(dtype) << " " << count;
        EXPECT_TRUE(draw(test_devices()[0], OpKind::dropout, dtype, count, attributes, true) == want) << "in place " << count;
      }
}

// Of halves: the float's result, rounded.
TEST(CudaRandom, DropoutOfHalvesComputesInFloat) {
  const Attributes attributes = {{Attr::key, int64_t{9}}, {Attr::ratio, 0.3}};
  const int64_t count = 1000;
  const Drawn wide = draw(cpu_device("baseline"), OpKind::dropout, DType::f32, count, attributes);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Drawn got = draw(test_devices()[0], OpKind::dropout, dtype, count, attributes);
    HostTensor want(DType::f32, {count});
    std::memcpy(want.mutable_data(), wide.y.data(), wide.y.size());
    const HostTensor rounded = want.cast(dtype);
    EXPECT_EQ(std::memcmp(got.y.data(), rounded.data(), got.y.size()), 0) << dtype_name(dtype);
    EXPECT_TRUE(got.mask == wide.mask);
  }
}

}  // namespace
}  // namespace zeroplan
