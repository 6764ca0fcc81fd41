// Rates of convolutions, pools and batch statistics at the sizes of residual networks, batch 8. Argument: threads.
#include "graph/ops/conv_shape.h"
#include "tests/bench/kernel_call.h"

namespace zeroplan {
namespace {

constexpr DType F = DType::f32;
constexpr int64_t kBatch = 8;

struct Conv {
  int64_t channels, extent, results, kernel, stride, before, groups = 1;
  int64_t out() const { return (extent + 2 * before - kernel) / stride + 1; }
  Shape x() const { return {kBatch, channels, extent, extent}; }
  Shape w() const { return {results, channels / groups, kernel, kernel}; }
  Shape y() const { return {kBatch, results, out(), out()}; }
  Attributes attributes() const {
    return {{Attr::strides, Shape{stride, stride}},
            {Attr::pads, Shape{before, before, before, before}},
            {Attr::dilations, Shape{1, 1}},
            {Attr::groups, groups}};
  }
};

void conv(benchmark::State& state, OpKind op, Conv c) {
  const Attributes attributes = c.attributes();
  const Shape x = c.x(), w = c.w(), y = c.y();
  const ConvShape shape = conv_shape(x.data(), w.data(), 4, attributes);
  Call call(op, attributes);
  call.input(F, op == OpKind::conv_grad_input ? y : x).input(F, op == OpKind::conv_grad_weight ? y : w);
  call.output(F, op == OpKind::conv ? y : op == OpKind::conv_grad_input ? x : w);
  const int64_t workspace = conv_workspace_bytes(shape, op, 1, 4);
  call.measure(state, 0, 2.0 * static_cast<double>(elements(y) * c.channels / c.groups * c.kernel * c.kernel), workspace);
}

constexpr double kPlanes = 4.0 * kBatch * 64 * 56 * 56;

void max_pool(benchmark::State& state) {
  Call call(
      OpKind::max_pool,
      {{Attr::kernel_shape, Shape{3, 3}}, {Attr::strides, Shape{2, 2}}, {Attr::pads, Shape{1, 1, 1, 1}}, {Attr::dilations, Shape{1, 1}}});
  call.input(F, {kBatch, 64, 112, 112}).output(F, {kBatch, 64, 56, 56}).output(DType::i64, {kBatch, 64, 56, 56});
  call.measure(state, 4 * kPlanes + 3 * kPlanes);
}
void average_pool(benchmark::State& state) {
  Call call(OpKind::average_pool, {{Attr::kernel_shape, Shape{3, 3}},
                                   {Attr::strides, Shape{1, 1}},
                                   {Attr::pads, Shape{1, 1, 1, 1}},
                                   {Attr::dilations, Shape{1, 1}},
                                   {Attr::count_include_pad, int64_t{0}}});
  call.input(F, {kBatch, 64, 56, 56}).output(F, {kBatch, 64, 56, 56}).measure(state, 2 * kPlanes);
}
void batch_norm(benchmark::State& state) {
  Call call(OpKind::batch_norm, {{Attr::epsilon, 1e-5}});
  call.input(F, {kBatch, 64, 56, 56}).input(F, {64}).input(F, {64});
  call.output(F, {kBatch, 64, 56, 56}).output(F, {64}).output(F, {64}).measure(state, 2 * kPlanes);
}
void batch_norm_grad(benchmark::State& state) {
  Call call(OpKind::batch_norm_grad, {{Attr::epsilon, 1e-5}});
  call.input(F, {kBatch, 64, 56, 56}).input(F, {kBatch, 64, 56, 56}).input(F, {64}).input(F, {64}).input(F, {64}, 1, 2);
  call.output(F, {kBatch, 64, 56, 56}).output(F, {64}).output(F, {64}).measure(state, 3 * kPlanes);
}

#define ZP_CONV_BENCH(name, ...)                                              \
  ZP_BENCH_CASE(conv, name, OpKind::conv, Conv{__VA_ARGS__});                 \
  ZP_BENCH_CASE(conv, name##_dx, OpKind::conv_grad_input, Conv{__VA_ARGS__}); \
  ZP_BENCH_CASE(conv, name##_dw, OpKind::conv_grad_weight, Conv{__VA_ARGS__})
ZP_CONV_BENCH(k3, 64, 56, 64, 3, 1, 1);
ZP_CONV_BENCH(k1_up, 64, 56, 256, 1, 1, 0);
ZP_CONV_BENCH(k1_down, 256, 56, 64, 1, 1, 0);
ZP_CONV_BENCH(k3_strided, 64, 56, 128, 3, 2, 1);
ZP_CONV_BENCH(k1_strided, 256, 56, 512, 1, 2, 0);
ZP_CONV_BENCH(stem, 3, 64, 64, 7, 2, 3);
ZP_CONV_BENCH(k3_8x8, 128, 8, 128, 3, 1, 1);
ZP_CONV_BENCH(k3_2x2, 512, 2, 512, 3, 1, 1);
ZP_CONV_BENCH(depthwise, 96, 40, 96, 3, 1, 1, 96);
ZP_CONV_BENCH(depthwise_k5, 192, 20, 192, 5, 1, 2, 192);
ZP_CONV_BENCH(depthwise_strided, 32, 160, 32, 3, 2, 1, 32);
ZP_BENCH(max_pool);
ZP_BENCH(average_pool);
ZP_BENCH(batch_norm);
ZP_BENCH(batch_norm_grad);

}  // namespace
}  // namespace zeroplan
