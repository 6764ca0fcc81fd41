// Operators on the bits of integers.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/onnx/tensor_data.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

void bit_shift(DecodeContext& c) {
  const std::string direction = c.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") throw Error(fmt::format("direction '{}' is unknown", direction));
  result(c, apply(direction == "LEFT" ? OpKind::shift_left : OpKind::shift_right, term(c, 0), term(c, 1)));
}

void bitwise_not(DecodeContext& c) {
  const Term x = term(c, 0);
  if (is_floating(x.dtype())) throw Error(fmt::format("its input is {}; it takes integers", onnx_type_name(onnx_type(x.dtype()))));
  result(c, opposite(x));
}

}  // namespace

void add_bit_decoders(DecoderTable& t) {
  t["BitShift"] = bit_shift;
  t["BitwiseAnd"] = binary<OpKind::bit_and>;
  t["BitwiseOr"] = binary<OpKind::bit_or>;
  t["BitwiseXor"] = binary<OpKind::bit_xor>;
  t["BitwiseNot"] = bitwise_not;
}

}  // namespace zeroplan
