// Constant nodes, and operators without a kernel that are evaluated where every operand is a constant.
#include "base/error.h"
#include "graph/onnx/decode.h"
#include "graph/onnx/tensor_data.h"

namespace zeroplan {
namespace {

HostTensor constant_value(DecodeContext& c) {
  if (const OnnxAttribute* a = c.node.find("value")) {
    return load_tensor(a->tensor, c.files, c.precision);
  }
  if (const OnnxAttribute* a = c.node.find("value_float")) return HostTensor::of<double>(c.precision, {}, {a->f});
  if (const OnnxAttribute* a = c.node.find("value_int")) return HostTensor::of<int64_t>(DType::i64, {}, {a->i});
  if (const OnnxAttribute* a = c.node.find("value_floats"))
    return HostTensor::of(c.precision, {static_cast<int64_t>(a->floats.size())}, a->floats);
  if (const OnnxAttribute* a = c.node.find("value_ints"))
    return HostTensor::of(DType::i64, {static_cast<int64_t>(a->ints.size())}, a->ints);
  throw Error("its value is of a kind that is not supported");
}

void constant(DecodeContext& c) { c.out(0, c.build.constant(constant_value(c))); }

void reduce_product(DecodeContext& c) {
  const HostTensor& x = c.constant(0, "operand");
  HostTensor y(x.dtype(), c.attr_int("keepdims", 1) ? Shape(x.shape().size(), 1) : Shape{});
  if (is_floating(x.dtype())) {
    double product = 1;
    for (int64_t i = 0; i < x.count(); ++i) product *= x.get(i);
    y.set(0, product);
  } else {
    int64_t product = 1;
    for (int64_t i = 0; i < x.count(); ++i)
      if (__builtin_mul_overflow(product, x.get_int(i), &product)) throw Error("its product overflows 64 bits");
    y.set_int(0, product);
  }
  c.out(0, c.build.constant(std::move(y)));
}

}  // namespace

bool decode_constant_only(DecodeContext& c) {
  if (!c.node.domain.empty() || c.count() == 0) return false;
  for (int i = 0; i < c.count(); ++i)
    if (!c.has(i) || !c.build.is_constant(c.in(i))) return false;
  if (c.node.op != "ReduceProd" || c.count() != 1 || c.node.find("axes")) return false;
  reduce_product(c);
  return true;
}

void add_constant_decoders(DecoderTable& t) { t["Constant"] = constant; }

}  // namespace zeroplan
