#include "graph/onnx/heads.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {

Term with_heads(DecodeContext& c, int input, const char* heads_attribute) {
  if (c.rank(input) == 4) return term(c, input);
  const int64_t heads = c.attr_int(heads_attribute, 0);
  const Shape s = c.shape(input);
  if (s.size() != 3 || heads <= 0 || s[2] % heads != 0)
    throw Error(fmt::format("its input {} {} needs rank 4, or rank 3 and the attribute {}", input, to_string(s), heads_attribute));
  return term(c, input).reshape({s[0], s[1], heads, s[2] / heads}).transpose({0, 2, 1, 3});
}

}  // namespace zeroplan
