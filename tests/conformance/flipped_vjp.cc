#include "tests/conformance/flipped_vjp.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zeroplan {
namespace {

void (*plain_vjp)(VjpContext&) = nullptr;

void flipped_vjp(VjpContext& c) {
  plain_vjp(c);
  for (size_t i = 0; i < c.gradients().size(); ++i)
    if (c.gradients()[i] != kNone) c.set(static_cast<int>(i), c.build.add(OpKind::neg, {c.gradients()[i]}));
}

}  // namespace

FlippedVjp::FlippedVjp(const std::string& op) : def_(const_cast<OpDef&>(op_def(parse_op(op)))) {
  if (!def_.vjp) throw Error(fmt::format("operator '{}' has no vjp", op));
  check(plain_vjp == nullptr, "one vjp is flipped at a time");
  plain_vjp = def_.vjp;
  def_.vjp = flipped_vjp;
}

FlippedVjp::~FlippedVjp() {
  def_.vjp = plain_vjp;
  plain_vjp = nullptr;
}

}  // namespace zeroplan
