// MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv. Sums of products of 8-bit numbers are exact in double.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/decode_windows.h"
#include "graph/onnx/quantize.h"
#include "graph/onnx/tensor_data.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

// How a zero point or a scale lies over its tensor, whose shape is a copy: nodes are added while it is used.
using Layout = Term (*)(Term numbers, Shape shape, const char* what);

[[noreturn]] void misfit(const Term& numbers, const Shape& shape, const char* what) {
  throw Error(fmt::format("its {} of shape {} does not fit a tensor of shape {}", what, to_string(numbers.shape()), to_string(shape)));
}

Term broadcast_or_refuse(Term numbers, Shape shape, const char* what) {
  if (!broadcasts_to(numbers.shape(), shape)) misfit(numbers, shape, what);
  return numbers;
}

Term per_tensor(Term numbers, Shape shape, const char* what) {
  if (elements(numbers.shape()) != 1) misfit(numbers, shape, what);
  return numbers.reshape({});
}

Term per_row(Term numbers, Shape shape, const char* what) {
  if (elements(numbers.shape()) == 1) return numbers.reshape({});
  return broadcast_or_refuse(numbers.rank() == 1 ? numbers.reshape({numbers.shape()[0], 1}) : numbers, shape, what);
}

Term per_column(Term numbers, Shape shape, const char* what) {
  return elements(numbers.shape()) == 1 ? numbers.reshape({}) : broadcast_or_refuse(numbers, shape, what);
}

// Of a weight [M, C / groups, …].
Term per_filter(Term numbers, Shape shape, const char* what) {
  if (elements(numbers.shape()) == 1) return numbers.reshape({});
  if (numbers.rank() != 1 || numbers.shape()[0] != shape[0]) misfit(numbers, shape, what);
  Shape along(shape.size(), 1);
  along[0] = shape[0];
  return numbers.reshape(along);
}

// The whole numbers of operand `input` less their zero point.
Term centred(DecodeContext& c, int input, int zero, Layout layout) {
  const Term q = term(c, input), whole = whole_numbers(q, DType::f64);
  if (q.dtype() != DType::u8 && q.dtype() != DType::i8)
    throw Error(fmt::format("its input {} is {}, which is not supported; int8 and uint8 are", input, onnx_type_name(onnx_type(q.dtype()))));
  return c.has(zero) ? whole - layout(term(c, zero), q.shape(), "zero point").cast(DType::f64) : whole;
}

// `terms`: products in one sum, each of at most 255² in size.
void expect_int32(int64_t terms) {
  constexpr int64_t kMost = ((int64_t{1} << 31) - 1) / (255 * 255);
  if (terms > kMost) throw Error(fmt::format("sums of {} products may not fit int32; at most {} are supported", terms, kMost));
}

Term matrix_sums(DecodeContext& c, int a_input, int a_zero, int b_input, int b_zero) {
  if (c.rank(a_input) == 0 || c.rank(b_input) == 0) throw Error("its operands must have rank 1 or more");
  expect_int32(c.shape(a_input).back());
  return matmul(centred(c, a_input, a_zero, per_row), centred(c, b_input, b_zero, per_column));
}

Term window_sums(DecodeContext& c, int x_input, int x_zero, int w_input, int w_zero) {
  const Term x = centred(c, x_input, x_zero, per_tensor), w = centred(c, w_input, w_zero, per_filter);
  expect_int32(w.shape().empty() || w.shape()[0] == 0 ? 0 : elements(w.shape()) / w.shape()[0]);
  return {c.build, convolution(c, x.id(), w.id())};
}

void matmul_integer(DecodeContext& c) { result(c, as_integers(matrix_sums(c, 0, 2, 1, 3), DType::i32)); }
void conv_integer(DecodeContext& c) { result(c, as_integers(window_sums(c, 0, 2, 1, 3), DType::i32)); }

// Sums times the scale of their numbers, in the scale and with the zero point of the result, inputs 6 and 7.
void requantise(DecodeContext& c, Term sums, Term scale) {
  const Term y_scale = per_tensor(term(c, 6), sums.shape(), "scale of the result");
  const Term zero = per_tensor(term(c, 7), sums.shape(), "zero point of the result");
  if (!is_quantised(zero.dtype()))
    throw Error(fmt::format("it quantises to {}, which is not supported; int8 and uint8 are", onnx_type_name(onnx_type(zero.dtype()))));
  const Term shift = zero.cast(scale.dtype());
  result(c, as_integers(rounded(sums.cast(scale.dtype()) * (scale / y_scale), &shift, zero.dtype()), zero.dtype()));
}

void quantised_matmul(DecodeContext& c) {
  const Term a_scale = per_row(term(c, 1), c.shape(0), "scale"), b_scale = per_column(term(c, 4), c.shape(3), "scale");
  requantise(c, matrix_sums(c, 0, 2, 3, 5), a_scale * b_scale);
}

void quantised_conv(DecodeContext& c) {
  const Term x_scale = per_tensor(term(c, 1), c.shape(0), "scale"), w_scale = term(c, 4);
  const bool one = elements(w_scale.shape()) == 1;
  if (!one && w_scale.shape() != Shape{c.shape(3)[0]}) misfit(w_scale, c.shape(3), "scale");
  const auto channels = [&](Term numbers) { return per_channel(numbers, c.rank(0)); };
  Term sums = window_sums(c, 0, 2, 3, 5);
  if (c.has(8)) sums = sums + channels(whole_numbers(term(c, 8), DType::f64));
  requantise(c, sums, x_scale * (one ? w_scale.reshape({}) : channels(w_scale)));
}

}  // namespace

void add_quantized_product_decoders(DecoderTable& t) {
  t["MatMulInteger"] = {matmul_integer, gradient_to({0, 1})};
  t["ConvInteger"] = {conv_integer, gradient_to({0, 1})};
  t["QLinearMatMul"] = {quantised_matmul, gradient_to({0, 3})};
  t["QLinearConv"] = {quantised_conv, gradient_to({0, 3})};
}

}  // namespace zeroplan
