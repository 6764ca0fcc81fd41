// matmul: a, b, bias (optional), added (optional) → y (dtype: f32 of 16-bit operands) as NumPy's: batch axes broadcast, operands of rank 1
// are a row (a) or a column (b). bias [N] and added, of y's shape, come on top.
#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/cuda_workspace.h"
#include "graph/ops/definitions.h"
#include "graph/ops/indexing.h"
#include "graph/ops/rules.h"

namespace zeroplan {

namespace {

Shape row_shape(const Shape& a) { return a.size() == 1 ? Shape{1, a[0]} : a; }
Shape column_shape(const Shape& b) { return b.size() == 1 ? Shape{b[0], 1} : b; }
Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

// Both operands with rank 2 or more; y includes the axes of size 1 that rank-1 operands add.
struct Product {
  Shape a, b, y;
  int64_t m, k, n;
};

Product product_of(const Shape& a_shape, const Shape& b_shape) {
  Product p{row_shape(a_shape), column_shape(b_shape), {}, 0, 0, 0};
  p.m = p.a[p.a.size() - 2];
  p.k = p.a.back();
  p.n = p.b.back();
  p.y = broadcast_shapes(batch_of(p.a), batch_of(p.b));
  p.y.push_back(p.m);
  p.y.push_back(p.n);
  return p;
}

void expect_summand(const Value& value, DType dtype, const Shape& shape, std::string_view what) {
  expect_dtype(value, dtype, what);
  expect_shape(value, shape, what);
}

std::vector<OutputType> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2, 4);
  const Value& a = floating_operand(graph, node, 0, "a");
  const Value& b = floating_operand(graph, node, 1, "b");
  expect_dtype(b, a.dtype, "b");
  expect_rank(a, 1, kMaxRank, "a");
  expect_rank(b, 1, kMaxRank, "b");
  const Product p = product_of(a.shape, b.shape);
  if (p.b[p.b.size() - 2] != p.k)
    throw Error(fmt::format("a '{}' {} and b '{}' {} do not agree in the axis that is summed over", a.name, to_string(a.shape), b.name,
                            to_string(b.shape)));
  Shape shape = batch_of(p.y);
  if (a.shape.size() > 1) shape.push_back(p.m);
  if (b.shape.size() > 1) shape.push_back(p.n);
  const DType dtype = sum_dtype(node, a.dtype);
  if (has_input(node, 2)) {
    expect_rank(b, 2, kMaxRank, "b");
    expect_summand(operand(graph, node, 2, "bias"), dtype, {p.n}, "bias");
  }
  if (has_input(node, 3)) expect_summand(operand(graph, node, 3, "added"), dtype, shape, "added");
  return {{dtype, shape}};
}

void evaluate(const Node& node, std::span<const HostTensor> in, std::span<HostTensor> out) {
  const HostTensor &a = in[0], &b = in[1];
  const Product p = product_of(a.shape(), b.shape());
  const Shape batch_a = batch_of(p.a), batch_b = batch_of(p.b);
  for_each_index(batch_of(p.y), [&](const Index& index, int64_t batch) {
    const int64_t first_a = broadcast_index(index, batch_a) * p.m * p.k, first_b = broadcast_index(index, batch_b) * p.k * p.n;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = (has_input(node, 2) ? in[2].get(j) : 0) + (has_input(node, 3) ? in[3].get((batch * p.m + i) * p.n + j) : 0);
        for (int64_t k = 0; k < p.k; ++k) sum += a.get(first_a + i * p.k + k) * b.get(first_b + k * p.n + j);
        out[0].set((batch * p.m + i) * p.n + j, sum);
      }
    }
  });
}

ValueId multiply(VjpContext& c, ValueId a, ValueId b) { return c.build.add(OpKind::matmul, {a, b}); }

// Weight without batch axes: everything is one 2-D product over all rows of the batch.
void flat_vjp(VjpContext& c, const Product& p, ValueId a, ValueId b, ValueId dy) {
  const int64_t rows = elements(p.y) / p.n;
  const ValueId flat_a = c.build.reshape(a, {rows, p.k});
  const ValueId flat_dy = c.build.reshape(dy, {rows, p.n});
  if (c.needs(0)) {
    const Shape shape = c.build.shape(c.input(0));
    c.set(0, c.build.reshape(multiply(c, flat_dy, c.build.transpose_last_two(b)), shape));
  }
  if (!c.needs(1)) return;
  // Of a transposed weight the gradient is built transposed, so that the weight's own gradient comes out contiguous.
  const NodeId producer = c.build.graph().value(b).producer;
  const bool transposed = producer != kNone && c.build.graph().nodes[producer].op == OpKind::transpose;
  const Shape shape = c.build.shape(c.input(1));
  const ValueId db = transposed ? c.build.transpose_last_two(multiply(c, c.build.transpose_last_two(flat_dy), flat_a))
                                : multiply(c, c.build.transpose_last_two(flat_a), flat_dy);
  c.set(1, c.build.reshape(db, shape));
}

void batched_vjp(VjpContext& c, const Product& p, ValueId a, ValueId b, ValueId dy) {
  if (c.needs(0)) {
    const Shape shape = c.build.shape(c.input(0));
    const ValueId da = multiply(c, dy, c.build.transpose_last_two(b));
    c.set(0, c.build.reshape(c.build.sum_to(da, p.a), shape));
  }
  if (c.needs(1)) {
    const Shape shape = c.build.shape(c.input(1));
    const ValueId db = multiply(c, c.build.transpose_last_two(a), dy);
    c.set(1, c.build.reshape(c.build.sum_to(db, p.b), shape));
  }
}

void vjp(VjpContext& c) {
  if (c.needs(2)) c.set(2, c.build.sum_to(c.output_gradient(), c.build.shape(c.input(2))));
  if (c.needs(3)) c.set(3, c.output_gradient());
  const Product p = product_of(c.build.shape(c.input(0)), c.build.shape(c.input(1)));
  const ValueId a = c.build.reshape(c.input(0), p.a);
  const ValueId b = c.build.reshape(c.input(1), p.b);
  const ValueId dy = c.build.reshape(c.output_gradient(), p.y);
  if (p.b.size() == 2)
    flat_vjp(c, p, a, b, dy);
  else
    batched_vjp(c, p, a, b, dy);
}

// a and b: one of the last two axes is contiguous, and the other steps over at least its extent (a leading dimension, as in BLAS).
bool accepts(const Graph&, const Node&, int input, const Shape& shape, const Strides& strides) {
  if (input > 1) return is_contiguous(shape, strides);
  const size_t rank = shape.size();
  if (rank < 2) return rank == 0 || shape[0] == 1 || strides[0] == 1;
  const auto leads = [&](size_t unit, size_t other) {
    return (shape[unit] == 1 || strides[unit] == 1) && (shape[other] == 1 || strides[other] >= shape[unit]);
  };
  return leads(rank - 1, rank - 2) || leads(rank - 2, rank - 1);
}

double flops(const Graph& graph, const Node& node) {
  const Product p = product_of(graph.value(node.inputs[0]).shape, graph.value(node.inputs[1]).shape);
  return 2.0 * static_cast<double>(elements(p.y)) * static_cast<double>(p.k);
}

int64_t cuda_workspace(const Graph& graph, const Node& node) { return cuda_matmul_workspace(elements(graph.value(node.outputs[0]).shape)); }

}  // namespace

OpDef matmul_def() {
  OpDef def;
  def.infer = infer;
  def.vjp = vjp;
  def.evaluate = evaluate;
  def.in_place = {{0, 3}};
  def.accepts = accepts;
  def.cuda_workspace = cuda_workspace;
  def.flops = flops;
  return def;
}

}  // namespace zeroplan
