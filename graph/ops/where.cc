// where: condition, a, b → y, all broadcast together.
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 3, 3);
  const Value& condition = operand(graph, node, 0, "condition");
  const Value& a = operand(graph, node, 1, "a");
  const Value& b = operand(graph, node, 2, "b");
  expect_dtype(condition, DType::boolean, "condition");
  expect_dtype(b, a.dtype, "b");
  return {{a.dtype, broadcast_shapes(condition.shape, broadcast_shapes(a.shape, b.shape))}};
}

void evaluate(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  for_each_index(out[0].shape(), [&](const Index& index, int64_t n) {
    const HostTensor& chosen = in[0].get(broadcast_index(index, in[0].shape())) != 0 ? in[1] : in[2];
    copy_element(chosen, broadcast_index(index, chosen.shape()), out[0], n);
  });
}

void vjp(VjpContext& c) {
  const ValueId dy = c.output_gradient();
  const ValueId zero = c.build.scalar(0, c.build.dtype(dy));
  for (int i = 1; i <= 2; ++i) {
    if (!c.needs(i)) continue;
    const Shape shape = c.build.shape(c.input(i));
    const ValueId part = c.build.add(OpKind::where, {c.input(0), i == 1 ? dy : zero, i == 1 ? zero : dy});
    c.set(i, c.build.sum_to(part, shape));
  }
}

}  // namespace

OpDef where_def() {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.in_place = {{0, 0}, {0, 1}, {0, 2}};
  def.accepts = accept_any_strides;
  return def;
}

}  // namespace zeroplan
