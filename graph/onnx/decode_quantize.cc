// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/quantize.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

// How the numbers of input 1 and 2 lie over input 0.
struct Granularity {
  int64_t axis, block;

  explicit Granularity(const DecodeContext& c) : axis(0), block(c.attr_int("block_size", 0)) {
    const bool one = elements(c.shape(1)) == 1 && c.rank(1) <= 1 && block == 0;
    if (!one) axis = c.axis("axis", 1, c.rank(0));
  }
};

void expect_same_shape(const DecodeContext& c) {
  if (elements(c.shape(2)) != elements(c.shape(1)) || (c.rank(1) > 1 && c.shape(2) != c.shape(1)))
    throw Error(fmt::format("its zero point has shape {}, its scale {}", to_string(c.shape(2)), to_string(c.shape(1))));
}

// Of the zero point, else as stated, else uint8.
DType quantised_type(const DecodeContext& c) {
  const int stated = static_cast<int>(c.attr_int("output_dtype", 0));
  const std::optional<DType> dtype = c.has(2) ? c.build.dtype(c.in(2)) : stated ? graph_dtype(stated, c.precision) : DType::u8;
  if (dtype && is_quantised(*dtype)) return *dtype;
  throw Error(fmt::format("it quantises to {}, which is not supported; uint8, int8, uint16 and int16 are",
                          onnx_type_name(c.has(2) ? onnx_type(*dtype) : stated)));
}

void quantize_linear(DecodeContext& c) {
  const Granularity g(c);
  const DType dtype = quantised_type(c), floating = c.build.dtype(c.in(1));
  const Term x = term(c, 0).cast(floating), scale = spread(term(c, 1), x.shape(), g.axis, g.block, "scale");
  if (!c.has(2)) return result(c, as_integers(rounded(x / scale, nullptr, dtype), dtype));
  expect_same_shape(c);
  const Term zero = spread(term(c, 2), x.shape(), g.axis, g.block, "zero point").cast(floating);
  result(c, as_integers(rounded(x / scale, &zero, dtype), dtype));
}

// The integers less their zero point, exact where they have 16 bits or less.
void dequantize_linear(DecodeContext& c) {
  const Granularity g(c);
  const Term q = term(c, 0), scale = spread(term(c, 1), q.shape(), g.axis, g.block, "scale");
  if (!is_quantised(q.dtype()) && q.dtype() != DType::i32)
    throw Error(fmt::format("its input is {}, which is not supported; uint8, int8, uint16, int16 and int32 are",
                            onnx_type_name(onnx_type(q.dtype()))));
  if (!c.has(2)) return result(c, whole_numbers(q, scale.dtype()) * scale);
  expect_same_shape(c);
  const Term zero = spread(term(c, 2), q.shape(), g.axis, g.block, "zero point");
  if (zero.dtype() != q.dtype())
    throw Error(
        fmt::format("its zero point is {}, its input {}", onnx_type_name(onnx_type(zero.dtype())), onnx_type_name(onnx_type(q.dtype()))));
  if (q.dtype() == DType::i32) return result(c, (q - zero).cast(scale.dtype()) * scale);
  result(c, (whole_numbers(q, scale.dtype()) - zero.cast(scale.dtype())) * scale);
}

// By the range that x spans, 0 included. The scale is a number of the data, not of the training: no gradient passes to it.
void dynamic_quantize_linear(DecodeContext& c) {
  constexpr double kSteps = 255;
  const Term x = term(c, 0);
  if (elements(x.shape()) == 0) throw Error("its input has no elements, so that there is no range to quantise");
  std::vector<int64_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  const auto largest = [&](Term of) { return maximum(reduce(OpKind::reduce_max, of, axes, false), 0); };
  const Term high = largest(x), low = -largest(-x), step = (high - low) / kSteps;
  const Term scale = detached(where(step == 0, 1, step));
  const Term zero = detached(rounded(-low / scale, nullptr, DType::u8));
  result(c, as_integers(rounded(x / scale, &zero, DType::u8), DType::u8));
  result(c, scale, 1);
  result(c, zero.cast(DType::u8), 2);
}

}  // namespace

void add_quantize_decoders(DecoderTable& t) {
  t["QuantizeLinear"] = quantize_linear;
  t["DequantizeLinear"] = dequantize_linear;
  t["DynamicQuantizeLinear"] = dynamic_quantize_linear;
}

}  // namespace zeroplan
