// Convolutions as products over columns, which the op cases take only where the library does not; and that gradients keep their bits.
#include <gtest/gtest.h>

#include "graph/ops/cuda_conv_columns.h"
#include "kernels/cuda/conv_paths.h"
#include "tests/cuda_kernels/device_call.h"
#include "tests/kernels/judge.h"
#include "tests/op_cases/case_lists.h"

namespace zeroplan {
namespace {

bool is_conv(OpKind op) { return op == OpKind::conv || op == OpKind::conv_grad_input || op == OpKind::conv_grad_weight; }

// The kernels' other way alone.
template <OpKind op>
void by_columns(const KernelArgs& args) {
  const TensorView &x = op == OpKind::conv_grad_input ? args.outputs[0] : args.inputs[0],
                   &w = op == OpKind::conv_grad_weight ? args.outputs[0] : args.inputs[1];
  kernels_cuda::convolve_columns(args, conv_shape(x.dims, w.dims, x.rank, *args.attributes), op);
}

RunOptions columns_on_device() {
  const auto run = [](OpKind op, KernelArgs& args, std::span<const std::span<std::byte>> memory) {
    run_on_device(op == OpKind::conv              ? by_columns<OpKind::conv>
                  : op == OpKind::conv_grad_input ? by_columns<OpKind::conv_grad_input>
                                                  : by_columns<OpKind::conv_grad_weight>,
                  args, memory);
  };
  return {{"columns", run, DeviceKind::cuda}};
}

TEST(CudaConv, EveryCaseByColumns) {
  int cases = 0;
  for (const OpCase& op_case : kernel_cases()) {
    if (!is_conv(op_case.op)) continue;
    ++cases;
    for (const DType precision : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      SCOPED_TRACE(std::string(op_case.name) + " " + std::string(dtype_name(precision)));
      const CaseGraph built = build_case(op_case, precision, 3);
      RunOptions options = columns_on_device();
      // The stand-in's product adds up all places of a weight gradient one after the other.
      const double more = op_case.op == OpKind::conv_grad_weight && precision == DType::f32 ? 2 : 1;
      expect_all_close(run_case(built, options), reference_outputs(built),
                       more * tolerance(op_case.op, precision == DType::f64 ? DType::f64 : DType::f32));
    }
  }
  EXPECT_GT(cases, 70);
}

struct Sizes {
  Shape x, w, y;
  std::vector<int64_t> strides, pads, dilations;
  int64_t groups;
};

OpCase case_of(const Sizes& s, OpKind op) {
  Attributes attributes = {{Attr::strides, s.strides}, {Attr::pads, s.pads}, {Attr::dilations, s.dilations}, {Attr::groups, s.groups}};
  const double small = 1.0 / static_cast<double>(elements(s.y) / s.y[1]);  // sums over points stay below 1
  if (op == OpKind::conv) return {"forward", op, {real(s.x), real(s.w, -0.1, 0.1)}, attributes};
  attributes.set(Attr::shape, op == OpKind::conv_grad_input ? s.x : s.w);
  if (op == OpKind::conv_grad_input) return {"input", op, {real(s.y), real(s.w, -0.1, 0.1)}, attributes};
  return {"weight", op, {real(s.x), real(s.y, -small, small)}, attributes};
}

// Judged by the CPU kernels, which the reference evaluators judge.
void check_chunks(const Sizes& sizes, OpKind op, bool several_images) {
  SCOPED_TRACE(std::string(op_name(op)) + " of " + to_string(sizes.x));
  const OpCase op_case = case_of(sizes, op);
  const CaseGraph built = build_case(op_case, DType::f32, 4);
  const ConvShape shape = conv_shape(sizes.x.data(), sizes.w.data(), static_cast<int>(sizes.x.size()), op_case.attributes);
  const ConvColumns cut = conv_columns(shape, op, 4, 4);
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(cut.images > 1, several_images);
  RunOptions cpu{cpu_device(cpu_instruction_set())}, device = columns_on_device();
  expect_all_close(run_case(built, device), run_case(built, cpu), 1e-5);
}

TEST(CudaConv, PartsOfAnImageAndGroupsOfImages) {
  const Sizes wide = {{2, 3, 700, 701}, {4, 3, 3, 3}, {2, 4, 700, 701}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  const Sizes grouped = {{2, 4, 610, 600}, {4, 2, 3, 3}, {2, 4, 611, 599}, {1, 1}, {2, 1, 1, 0}, {1, 1}, 2};
  const Sizes many = {{7, 8, 150, 140}, {6, 8, 3, 3}, {7, 6, 150, 140}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  for (const OpKind op : {OpKind::conv, OpKind::conv_grad_input, OpKind::conv_grad_weight}) {
    check_chunks(wide, op, false);
    check_chunks(grouped, op, false);
    check_chunks(many, op, true);
  }
}

// Of the library's algorithms the fastest one for each gradient adds up in any order: it must not be taken.
TEST(CudaConv, GradientsHaveTheSameBitsEachTime) {
  const Sizes sizes = {{2, 3, 9, 8}, {4, 3, 3, 3}, {2, 4, 9, 8}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  for (const OpKind op : {OpKind::conv, OpKind::conv_grad_input, OpKind::conv_grad_weight}) {
    const CaseGraph built = build_case(case_of(sizes, op), DType::f32, 4);
    RunOptions options{test_devices()[0]};
    const std::vector<HostTensor> first = run_case(built, options);
    for (int i = 0; i < 4; ++i) expect_same_bits(run_case(built, options), first);
  }
}

TEST(CudaConv, NothingToAddUp) {
  const Sizes empty = {{0, 3, 9, 8}, {4, 3, 3, 3}, {0, 4, 9, 8}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1};
  for (const OpKind op : {OpKind::conv, OpKind::conv_grad_input, OpKind::conv_grad_weight}) {
    OpCase op_case = case_of({{1, 3, 9, 8}, {4, 3, 3, 3}, {1, 4, 9, 8}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1}, op);
    for (TensorSpec& input : op_case.inputs)
      if (input.shape[0] == 1) input.shape[0] = 0;
    if (op == OpKind::conv_grad_input) op_case.attributes.set(Attr::shape, empty.x);
    const CaseGraph built = build_case(op_case, DType::f32, 4);
    RunOptions options{test_devices()[0]};
    expect_all_close(run_case(built, options), reference_outputs(built), 1e-6);
  }
}

}  // namespace
}  // namespace zeroplan
