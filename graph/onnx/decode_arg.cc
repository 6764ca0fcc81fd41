// ArgMax, ArgMin, CumSum.
#include "base/error.h"
#include "graph/onnx/terms.h"

namespace zeroplan {
namespace {

void arg(DecodeContext& c, ValueId x) {
  c.out(0, c.build.add(OpKind::arg_max, {x},
                       {{Attr::axis, c.axis("axis", 0, c.rank(0))},
                        {Attr::keepdims, c.attr_int("keepdims", 1)},
                        {Attr::select_last, c.attr_int("select_last_index", 0)}}));
}

void arg_max(DecodeContext& c) { arg(c, c.in(0)); }

void arg_min(DecodeContext& c) { arg(c, opposite(term(c, 0)).id()); }

void cum_sum(DecodeContext& c) {
  const std::vector<int64_t> axis = c.ints(1, "axis");
  if (axis.size() != 1) throw Error("its axis is not one number");
  const Attributes attributes = {{Attr::axis, normalize_axis(axis[0], c.rank(0))},
                                 {Attr::exclusive, c.attr_int("exclusive", 0)},
                                 {Attr::reverse, c.attr_int("reverse", 0)}};
  result(c, apply(OpKind::cumsum, wide(term(c, 0)), attributes).cast(c.build.dtype(c.in(0))));
}

}  // namespace

void add_arg_decoders(DecoderTable& t) {
  t["ArgMax"] = arg_max;
  t["ArgMin"] = arg_min;
  t["CumSum"] = cum_sum;
}

}  // namespace zeroplan
