// rms_norm: x, gamma → y, rstd over the last axis. rms_norm_grad: dy, x, gamma, rstd → dx, dgamma.
#include <cmath>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/norm_rules.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  const Value& x = check_norm_operands(graph, node, {"gamma"});
  return {{x.dtype, x.shape}, {wide_dtype(x.dtype), row_shape(x.shape)}};
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &x = in[0], &gamma = in[1];
  const int64_t columns = x.shape().back();
  const double epsilon = node.attributes.get_double(Attr::epsilon);
  for (int64_t row = 0; row < row_count(x.shape()); ++row) {
    const int64_t first = row * columns;
    double squares = 0;
    for (int64_t i = 0; i < columns; ++i) squares += x.get(first + i) * x.get(first + i);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t i = 0; i < columns; ++i) out[0].set(first + i, x.get(first + i) * rstd * gamma.get(i));
    out[1].set(row, rstd);
  }
}

void vjp(VjpContext& c) {
  if (c.output_gradient(1) != kNone) throw Error("rms_norm has no gradient through its rstd output");
  const std::vector<ValueId> grads = c.build.add_multi(OpKind::rms_norm_grad, {c.output_gradient(), c.input(0), c.input(1), c.output(1)});
  c.set(0, grads[0]);
  c.set(1, grads[1]);
}

std::vector<OutputType> infer_grad(const Graph& graph, const Node& node) {
  const Value& dy = check_norm_grad_operands(graph, node, {"rstd"});
  return {{dy.dtype, dy.shape}, {dy.dtype, {dy.shape.back()}}};
}

// With x̂ = x·rstd and g = dy·gamma: dx = rstd·(g - x̂·mean(g·x̂)).
void evaluate_grad(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &dy = in[0], &x = in[1], &gamma = in[2];
  const int64_t columns = x.shape().back();
  std::vector<double> dgamma(columns, 0);
  for (int64_t row = 0; row < row_count(x.shape()); ++row) {
    const int64_t first = row * columns;
    const double rstd = in[3].get(row);
    double dot = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const double contribution = dy.get(first + i) * x.get(first + i) * rstd;
      dgamma[i] += contribution;
      dot += contribution * gamma.get(i);
    }
    dot /= static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i) out[0].set(first + i, rstd * (dy.get(first + i) * gamma.get(i) - x.get(first + i) * rstd * dot));
  }
  for (int64_t i = 0; i < columns; ++i) out[1].set(i, dgamma[i]);
}

}  // namespace

OpDef rms_norm_def() {
  OpDef def = norm_def(norm_flops<6>);
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  return def;
}

OpDef rms_norm_grad_def() {
  OpDef def = norm_grad_def(norm_flops<6>);
  def.infer = infer_grad;
  def.evaluate = evaluate_grad;
  return def;
}

}  // namespace zeroplan
