// Constant nodes, and operators without a kernel that are evaluated where every operand is a constant.
#include <cmath>

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

using Scalar = double (*)(double);

const std::map<std::string_view, Scalar>& scalar_functions() {
  static const std::map<std::string_view, Scalar> table = {
      {"Acos", std::acos},   {"Acosh", std::acosh}, {"Asin", std::asin},       {"Asinh", std::asinh},
      {"Atan", std::atan},   {"Atanh", std::atanh}, {"Ceil", std::ceil},       {"Cosh", std::cosh},
      {"Floor", std::floor}, {"Sinh", std::sinh},   {"Round", std::nearbyint}, {"Tan", std::tan},
  };
  return table;
}

void modulo(DecodeContext& c) {
  const HostTensor &a = c.constant(0, "operand"), &b = c.constant(1, "operand");
  if (is_floating(a.dtype()) || a.shape() != b.shape()) throw Error("only integer operands of equal shape are supported");
  HostTensor y(a.dtype(), a.shape());
  for (int64_t i = 0; i < a.count(); ++i) {
    const int64_t divisor = b.get_int(i);
    if (divisor == 0) throw Error("it divides by zero");
    const int64_t rest = divisor == -1 ? 0 : a.get_int(i) % divisor;
    y.set_int(i, rest != 0 && (rest < 0) != (divisor < 0) && !c.attr_int("fmod", 0) ? rest + divisor : rest);
  }
  c.out(0, c.build.constant(std::move(y)));
}

}  // namespace

bool decode_constant_only(DecodeContext& c) {
  if (!c.node.domain.empty() || c.count() == 0) return false;
  for (int i = 0; i < c.count(); ++i)
    if (!c.has(i) || !c.build.is_constant(c.in(i))) return false;
  if (c.node.op == "Mod") return modulo(c), true;
  const auto found = scalar_functions().find(c.node.op);
  if (found == scalar_functions().end()) return false;
  HostTensor y = c.constant(0, "operand");
  if (!is_floating(y.dtype())) return false;
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, found->second(y.get(i)));
  c.out(0, c.build.constant(std::move(y)));
  return true;
}

void add_constant_decoders(DecoderTable& t) { t["Constant"] = constant; }

}  // namespace zeroplan
