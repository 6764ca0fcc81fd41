// layer_norm: x, gamma, beta (optional) → y, mean, rstd over the last axis. layer_norm_grad: dy, x, gamma, mean, rstd → dx, dgamma, dbeta.
#include <cmath>

#include "base/error.h"
#include "graph/ops/definitions.h"
#include "graph/ops/norm_rules.h"
#include "graph/ops/rules.h"

namespace zeroplan {
namespace {

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  const Value& x = check_norm_operands(graph, node, {"gamma", "beta"});
  return {{x.dtype, x.shape}, {wide_dtype(x.dtype), row_shape(x.shape)}, {wide_dtype(x.dtype), row_shape(x.shape)}};
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &x = in[0], &gamma = in[1];
  const int64_t columns = x.shape().back();
  const double epsilon = node.attributes.get_double(Attr::epsilon);
  for (int64_t row = 0; row < row_count(x.shape()); ++row) {
    const int64_t first = row * columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += x.get(first + i);
    const double mean = sum / static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i) squares += (x.get(first + i) - mean) * (x.get(first + i) - mean);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      const double beta = has_input(node, 2) ? in[2].get(i) : 0;
      out[0].set(first + i, (x.get(first + i) - mean) * rstd * gamma.get(i) + beta);
    }
    out[1].set(row, mean);
    out[2].set(row, rstd);
  }
}

void vjp(VjpContext& c) {
  if (c.output_gradient(1) != kNone || c.output_gradient(2) != kNone)
    throw Error("layer_norm has no gradient through its mean and rstd outputs");
  const std::vector<ValueId> grads =
      c.build.add_multi(OpKind::layer_norm_grad, {c.output_gradient(), c.input(0), c.input(1), c.output(1), c.output(2)});
  c.set(0, grads[0]);
  c.set(1, grads[1]);
  if (c.input(2) != kNone) c.set(2, grads[2]);
}

std::vector<OutputType> infer_grad(const Graph& graph, const Node& node) {
  const Value& dy = check_norm_grad_operands(graph, node, {"mean", "rstd"});
  const Shape columns = {dy.shape.back()};
  return {{dy.dtype, dy.shape}, {dy.dtype, columns}, {dy.dtype, columns}};
}

// With x̂ = (x - mean)·rstd and g = dy·gamma: dx = rstd·(g - mean(g) - x̂·mean(g·x̂)).
void evaluate_grad(const Node&, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &dy = in[0], &x = in[1], &gamma = in[2];
  const int64_t columns = x.shape().back();
  std::vector<double> dgamma(columns, 0), dbeta(columns, 0);
  for (int64_t row = 0; row < row_count(x.shape()); ++row) {
    const int64_t first = row * columns;
    const double mean = in[3].get(row), rstd = in[4].get(row);
    const auto normal = [&](int64_t i) { return (x.get(first + i) - mean) * rstd; };
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const double g = dy.get(first + i) * gamma.get(i);
      sum += g;
      dot += g * normal(i);
      dgamma[i] += dy.get(first + i) * normal(i);
      dbeta[i] += dy.get(first + i);
    }
    sum /= static_cast<double>(columns);
    dot /= static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i) out[0].set(first + i, rstd * (dy.get(first + i) * gamma.get(i) - sum - normal(i) * dot));
  }
  for (int64_t i = 0; i < columns; ++i) {
    out[1].set(i, dgamma[i]);
    out[2].set(i, dbeta[i]);
  }
}

}  // namespace

OpDef layer_norm_def() {
  OpDef def = norm_def(norm_flops<8>);
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  return def;
}

OpDef layer_norm_grad_def() {
  OpDef def = norm_grad_def(norm_flops<8>);
  def.infer = infer_grad;
  def.evaluate = evaluate_grad;
  return def;
}

}  // namespace zeroplan
