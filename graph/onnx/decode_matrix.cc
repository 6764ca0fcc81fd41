// MatMul, Gemm, Softmax, LogSoftmax.
#include <numeric>

#include "base/error.h"
#include "graph/onnx/decode.h"

namespace zeroplan {
namespace {

void matmul(DecodeContext& c) { c.out(0, c.build.add(OpKind::matmul, {c.in(0), c.in(1)})); }

ValueId scaled(DecodeContext& c, ValueId x, double factor) {
  return factor == 1.0 ? x : c.build.add(OpKind::mul, {x, c.build.scalar(factor, c.build.dtype(x))});
}

void gemm(DecodeContext& c) {
  if (c.rank(0) != 2 || c.rank(1) != 2) throw Error("its operands must have rank 2");
  const ValueId a = c.attr_int("transA", 0) ? c.build.transpose(c.in(0), {1, 0}) : c.in(0);
  const ValueId b = c.attr_int("transB", 0) ? c.build.transpose(c.in(1), {1, 0}) : c.in(1);
  ValueId y = scaled(c, c.build.add(OpKind::matmul, {a, b}), c.attr_float("alpha", 1.0));
  const double beta = c.attr_float("beta", 1.0);
  if (c.has(2) && beta != 0) y = c.build.add(OpKind::add, {y, scaled(c, c.in(2), beta)});
  c.out(0, y);
}

// Runs `fn` with the axis moved to the end.
template <typename Fn>
ValueId on_last_axis(DecodeContext& c, ValueId x, int64_t axis, Fn&& fn) {
  std::vector<int64_t> permutation(c.build.shape(x).size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[axis], permutation.back());  // its own inverse
  return c.build.transpose(fn(c.build.transpose(x, permutation)), permutation);
}

void softmax(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  c.out(0, on_last_axis(c, c.in(0), axis, [&](ValueId x) { return c.build.add(OpKind::softmax, {x}); }));
}

// x - max - log Σ exp(x - max); the maximum is constant for the gradient up to terms that cancel.
void log_softmax(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  const Attributes over = {{Attr::axes, std::vector<int64_t>{axis}}, {Attr::keepdims, int64_t{1}}};
  const ValueId x = c.in(0);
  const ValueId shifted = c.build.add(OpKind::sub, {x, c.build.add(OpKind::reduce_max, {x}, over)});
  const ValueId sum = c.build.add(OpKind::reduce_sum, {c.build.add(OpKind::exp, {shifted})}, over);
  c.out(0, c.build.add(OpKind::sub, {shifted, c.build.add(OpKind::log, {sum})}));
}

}  // namespace

void add_matrix_decoders(DecoderTable& t) {
  t["MatMul"] = matmul;
  t["Gemm"] = gemm;
  t["Softmax"] = softmax;
  t["LogSoftmax"] = log_softmax;
}

}  // namespace zeroplan
