// Constant nodes.
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

}  // namespace

void add_constant_decoders(DecoderTable& t) { t["Constant"] = constant; }

}  // namespace zeroplan
