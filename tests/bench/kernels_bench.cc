// Rates of the kernels at the sizes of gpt2-mini: 1024 rows (4 × 256 tokens), 384 wide, 8192 words. Argument: threads.
#include "graph/ops/workspace.h"
#include "runtime/plan/report.h"
#include "tests/bench/kernel_call.h"

namespace zeroplan {
namespace {

constexpr int64_t kRows = 1024, kWidth = 384, kWords = 8192;

constexpr DType F = DType::f32;

TensorView transposed(TensorView v) {
  std::swap(v.dims[0], v.dims[1]);
  std::swap(v.strides[0], v.strides[1]);
  return v;
}

// form: 0 x·w, 1 x·wᵀ, 2 xᵀ·dy
void matmul(benchmark::State& state, int64_t m, int64_t n, int64_t k, int form) {
  Call call(OpKind::matmul);
  call.input(F, form == 2 ? Shape{k, m} : Shape{m, k}).input(F, form == 1 ? Shape{n, k} : Shape{k, n}).output(F, {m, n});
  if (form == 2) call.operand(0) = transposed(call.operand(0));
  if (form == 1) call.operand(1) = transposed(call.operand(1));
  call.measure(state, 0, 2.0 * static_cast<double>(m * n * k));
}

// q, k, v as the views [B, H, T, D] of one projection [B, T, 3, H, D], as the model has them.
constexpr int64_t kBatch = 4, kHeads = 6, kTokens = 256, kDepth = 64;
TensorView head_view(const TensorView& packed, int which) {
  const int64_t row = 3 * kHeads * kDepth;
  return make_view(packed.as<float>() + which * kHeads * kDepth, F, {kBatch, kHeads, kTokens, kDepth}, {kTokens * row, kDepth, row, 1});
}
constexpr double kAttentionFlops = 2.0 * kBatch * kHeads * kTokens * kTokens * kDepth;  // causal: half of two products

void attention(benchmark::State& state) {
  Call packed(OpKind::copy), call(OpKind::attention, {{Attr::scale, 0.125}, {Attr::causal, int64_t{1}}});
  packed.input(F, {kBatch, kTokens, 3, kHeads, kDepth});
  for (int i = 0; i < 3; ++i) call.view(head_view(packed.operand(0), i));
  call.output(F, {kBatch, kHeads, kTokens, kDepth}).output(F, {kBatch, kHeads, kTokens});
  call.measure(state, 0, kAttentionFlops, attention_workspace(1, kDepth, 4));
}

void attention_grad(benchmark::State& state) {
  Call packed(OpKind::copy), call(OpKind::attention_grad, {{Attr::scale, 0.125}, {Attr::causal, int64_t{1}}});
  packed.input(F, {kBatch, kTokens, 3, kHeads, kDepth});
  const Shape shape = {kBatch, kHeads, kTokens, kDepth};
  call.input(F, shape);
  for (int i = 0; i < 3; ++i) call.view(head_view(packed.operand(0), i));
  call.input(F, shape).input(F, {kBatch, kHeads, kTokens}, 4, 5).output(F, shape).output(F, shape).output(F, shape);
  call.measure(state, 0, 2.5 * kAttentionFlops, attention_grad_workspace(1, kBatch * kHeads * kTokens, kDepth, 4));
}

constexpr double kHidden = 4.0 * kRows * kWidth;  // bytes of one [rows, width]

void unary(benchmark::State& state, OpKind op) {
  Call(op).input(F, {kRows, 4 * kWidth}).output(F, {kRows, 4 * kWidth}).measure(state, 2 * 4 * kHidden);
}
void add(benchmark::State& state) {
  Call(OpKind::add).input(F, {kRows, kWidth}).input(F, {kRows, kWidth}).output(F, {kRows, kWidth}).measure(state, 3 * kHidden);
}
void add_bias(benchmark::State& state) {
  Call(OpKind::add).input(F, {kRows, kWidth}).input(F, {kWidth}).output(F, {kRows, kWidth}).measure(state, 2 * kHidden);
}

// gelu(x + bias), tanh form, in place
void bias_gelu(benchmark::State& state) {
  ElementwiseCode code;
  code.instructions = {{OpKind::add, 0, 1}, {OpKind::gelu, 2, -1, -1, 1}};
  Call call(OpKind::elementwise);
  call.chain = std::move(code);
  call.input(F, {kRows, 4 * kWidth}).input(F, {4 * kWidth}).in_place(0).measure(state, 2 * 4 * kHidden);
}

void copy_heads(benchmark::State& state) {
  Call call(OpKind::copy);
  call.input(F, {kBatch, kTokens, kHeads, kDepth});
  call.operand(0) =
      make_view(call.operand(0).data, F, {kBatch, kHeads, kTokens, kDepth}, {kTokens * kHeads * kDepth, kDepth, kHeads * kDepth, 1});
  call.output(F, {kBatch, kHeads, kTokens, kDepth}).measure(state, 2 * kHidden);
}
void copy_transposed(benchmark::State& state) {
  Call call(OpKind::copy);
  call.input(F, {kRows, kWidth});
  call.operand(0) = transposed(call.operand(0));
  call.output(F, {kWidth, kRows}).measure(state, 2 * kHidden);
}

void reduce_rows(benchmark::State& state) {
  Call(OpKind::reduce_sum, {{Attr::axes, std::vector<int64_t>{0}}}).input(F, {kRows, kWidth}).output(F, {kWidth}).measure(state, kHidden);
}
void reduce_last(benchmark::State& state) {
  Call(OpKind::reduce_sum, {{Attr::axes, std::vector<int64_t>{1}}}).input(F, {kRows, kWidth}).output(F, {kRows}).measure(state, kHidden);
}

void softmax(benchmark::State& state) {
  Call(OpKind::softmax).input(F, {kRows, kWidth}).output(F, {kRows, kWidth}).measure(state, 2 * kHidden);
}
void layer_norm(benchmark::State& state) {
  Call call(OpKind::layer_norm, {{Attr::epsilon, 1e-5}});
  call.input(F, {kRows, kWidth})
      .input(F, {kWidth})
      .input(F, {kWidth})
      .output(F, {kRows, kWidth})
      .output(F, {kRows, 1})
      .output(F, {kRows, 1});
  call.measure(state, 2 * kHidden);
}
void layer_norm_grad(benchmark::State& state) {
  Call call(OpKind::layer_norm_grad);
  call.input(F, {kRows, kWidth}).input(F, {kRows, kWidth}).input(F, {kWidth}).input(F, {kRows, 1}).input(F, {kRows, 1}, 1, 2);
  call.output(F, {kRows, kWidth}).output(F, {kWidth}).output(F, {kWidth}).measure(state, 3 * kHidden, 0, norm_grad_workspace(kWidth));
}

constexpr double kLogits = 4.0 * kRows * kWords;
void cross_entropy(benchmark::State& state) {
  Call call(OpKind::cross_entropy);
  call.input(F, {kRows, kWords}).input(DType::i64, {kRows}, 0, kWords).output(F, {}).output(F, {}).output(F, {kRows});
  call.measure(state, kLogits, 0, cross_entropy_workspace(kRows));
}
void cross_entropy_grad(benchmark::State& state) {
  Call call(OpKind::cross_entropy_grad);
  call.input(F, {}).input(F, {kRows, kWords}).input(DType::i64, {kRows}, 0, kWords).input(F, {kRows}, 9, 10).output(F, {kRows, kWords});
  call.measure(state, 2 * kLogits);
}

void gather(benchmark::State& state) {
  Call(OpKind::gather, {{Attr::axis, int64_t{0}}})
      .input(F, {kWords, kWidth})
      .input(DType::i64, {kRows}, 0, kWords)
      .output(F, {kRows, kWidth})
      .measure(state, 2 * kHidden);
}
void gather_grad(benchmark::State& state) {
  Call call(OpKind::gather_grad, {{Attr::axis, int64_t{0}}});
  call.input(F, {kRows, kWidth})
      .input(DType::i64, {kRows}, 0, kWords)
      .output(F, {kWords, kWidth})
      .measure(state, 3 * kHidden + 4.0 * kWords * kWidth);
}

constexpr int64_t kParameters = 4 << 20;
void optimizer(benchmark::State& state, const char* name, int moments) {
  Call call(OpKind::optimizer_update, {{Attr::optimizer, std::string(name)}});
  call.input(F, {kParameters}).input(F, {kParameters}).input(DType::f64, {kReportFields});
  for (int i = 0; i < moments; ++i) call.input(F, {kParameters}, 0, 1);
  double* report = call.operand(2).as<double>();
  std::fill_n(report, static_cast<int>(kReportFields), 0.0);
  report[kReportWeight] = report[kReportFactor] = 1;
  call.in_place(0);
  for (int i = 0; i < moments; ++i) call.in_place(3 + i);
  call.in_place(1);
  const UnitExtent whole{0, kParameters, 1};
  call.unit = {&whole, 1, kParameters, 0, kParameters};
  call.scalars.step = 2;
  call.measure(state, 2.0 * (2 + moments) * 4 * kParameters);
}
void grad_norm(benchmark::State& state) {
  Call call(OpKind::grad_norm);
  call.input(F, {kParameters}).input(DType::f64, {kReportFields}, 1, 1).input(DType::i64, {kNormLimbs}, 0, 0).in_place(2);
  const UnitExtent whole{0, kParameters, 1};
  call.unit = {&whole, 1, kParameters, 0, kParameters};
  call.measure(state, 4.0 * kParameters);
}

ZP_BENCH_CASE(matmul, qkv, kRows, 3 * kWidth, kWidth, 0);
ZP_BENCH_CASE(matmul, mlp_up, kRows, 4 * kWidth, kWidth, 0);
ZP_BENCH_CASE(matmul, mlp_down_dx, kRows, 4 * kWidth, kWidth, 1);
ZP_BENCH_CASE(matmul, mlp_up_dw, kWidth, 4 * kWidth, kRows, 2);
ZP_BENCH_CASE(matmul, logits, kRows, kWords, kWidth, 1);
ZP_BENCH(attention);
ZP_BENCH(attention_grad);
ZP_BENCH(add);
ZP_BENCH(add_bias);
ZP_BENCH_CASE(unary, exp, OpKind::exp);
ZP_BENCH_CASE(unary, tanh, OpKind::tanh);
ZP_BENCH_CASE(unary, erf, OpKind::erf);
ZP_BENCH_CASE(unary, gelu, OpKind::gelu);
ZP_BENCH(bias_gelu);
ZP_BENCH(copy_heads);
ZP_BENCH(copy_transposed);
ZP_BENCH(reduce_rows);
ZP_BENCH(reduce_last);
ZP_BENCH(softmax);
ZP_BENCH(layer_norm);
ZP_BENCH(layer_norm_grad);
ZP_BENCH(cross_entropy);
ZP_BENCH(cross_entropy_grad);
ZP_BENCH(gather);
ZP_BENCH(gather_grad);
ZP_BENCH_CASE(optimizer, adamw, "adamw", 2);
ZP_BENCH_CASE(optimizer, sgd_momentum, "sgd", 1);
ZP_BENCH(grad_norm);

}  // namespace
}  // namespace zeroplan
