// Placeholders while the branches are joined: delete a line together with the op that replaces it.
#include "base/error.h"
#include "graph/ops/definitions.h"

namespace zeroplan {
namespace {
std::vector<OutputType> pending(const Graph&, const Node&) { throw Error("is not there yet"); }
OpDef pending_def() {
  OpDef def;
  def.infer = pending;
  return def;
}
}  // namespace

OpDef ceil_def() { return pending_def(); }

OpDef floor_def() { return pending_def(); }

OpDef round_def() { return pending_def(); }

OpDef tan_def() { return pending_def(); }

OpDef asin_def() { return pending_def(); }

OpDef acos_def() { return pending_def(); }

OpDef atan_def() { return pending_def(); }

OpDef sinh_def() { return pending_def(); }

OpDef cosh_def() { return pending_def(); }

OpDef asinh_def() { return pending_def(); }

OpDef acosh_def() { return pending_def(); }

OpDef atanh_def() { return pending_def(); }

OpDef modulo_def() { return pending_def(); }

OpDef remainder_def() { return pending_def(); }

OpDef shift_left_def() { return pending_def(); }

OpDef shift_right_def() { return pending_def(); }

OpDef bit_and_def() { return pending_def(); }

OpDef bit_or_def() { return pending_def(); }

OpDef bit_xor_def() { return pending_def(); }

OpDef reduce_prod_def() { return pending_def(); }

OpDef arg_max_def() { return pending_def(); }

OpDef cumsum_def() { return pending_def(); }

OpDef top_k_def() { return pending_def(); }

OpDef scatter_def() { return pending_def(); }

}  // namespace zeroplan
