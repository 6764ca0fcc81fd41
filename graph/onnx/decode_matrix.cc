// MatMul, Gemm, Softmax, LogSoftmax.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/terms.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

// Integers as products that are added up: there is no kernel for them, as nothing is trained through them.
Term integer_product(Term a, Term b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.reshape({1, a.shape()[0]});
  if (column) b = b.reshape({b.shape()[0], 1});
  Shape left = a.shape(), right = b.shape();
  left.push_back(1);                 // [..., M, K, 1]
  right.insert(right.end() - 2, 1);  // [..., 1, K, N]
  const Term terms = a.reshape(left) * b.reshape(right);
  constexpr int64_t kMostTerms = int64_t{1} << 28;
  if (elements(terms.shape()) > kMostTerms) throw Error("a product of integer matrices of this size is not supported; cast them to float");
  const DType dtype = a.dtype();
  const Term sums = reduce(OpKind::reduce_sum, wide(terms), {terms.rank() - 2}, false);
  Shape shape = sums.shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return sums.cast(dtype).reshape(shape);
}

Term product(Term a, Term b) { return is_floating(a.dtype()) ? matmul(a, b) : integer_product(a, b); }

void matmul_op(DecodeContext& c) {
  if (c.rank(0) == 0 || c.rank(1) == 0) throw Error("its operands must have rank 1 or more");
  result(c, product(term(c, 0), term(c, 1)));
}

Term scaled(Term x, double factor) {
  if (!is_floating(x.dtype()) && factor != std::floor(factor))
    throw Error(fmt::format("its factor {} is no integer, but its operands are", factor));
  return factor == 1.0 ? x : x * factor;
}

void gemm(DecodeContext& c) {
  if (c.rank(0) != 2 || c.rank(1) != 2) throw Error("its operands must have rank 2");
  const auto side = [&](int input, const char* turned) {
    return c.attr_int(turned, 0) ? term(c, input).transpose({1, 0}) : term(c, input);
  };
  const Term y = scaled(product(side(0, "transA"), side(1, "transB")), c.attr_float("alpha", 1.0));
  const double beta = c.attr_float("beta", 1.0);
  if (!c.has(2) || beta == 0) return result(c, y);
  if (!broadcasts_to(c.shape(2), y.shape()))
    throw Error(fmt::format("its C of shape {} does not broadcast to {}", to_string(c.shape(2)), to_string(y.shape())));
  result(c, y + scaled(term(c, 2), beta));
}

void softmax(DecodeContext& c) {
  const int64_t axis = c.axis("axis", -1, c.rank(0));
  result(c, axis_back(apply(OpKind::softmax, axis_last(term(c, 0), axis)), axis));
}

// x - shift - log Σ exp(x - shift)
void log_softmax(DecodeContext& c) {
  const std::vector<int64_t> axes = {c.axis("axis", -1, c.rank(0))};
  const Term x = shift_down(term(c, 0), axes).x;
  result(c, x - log(reduce(OpKind::reduce_sum, exp(x), axes, true)));
}

}  // namespace

void add_matrix_decoders(DecoderTable& t) {
  t["MatMul"] = matmul_op;
  t["Gemm"] = gemm;
  t["Softmax"] = softmax;
  t["LogSoftmax"] = log_softmax;
}

}  // namespace zeroplan
